//! Frontmatter that is nearly YAML, such as `description: [WIP] use this: when x`. Other readers of skill files
//! accept it, so such files exist. An entry that is not YAML by itself can only be a text without quotes.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, Spot};

use super::yaml::{self, Node};

/// The keys that are texts.
const TEXTS: [&str; 4] = ["name", "description", "license", "compatibility"];

/// The other keys of skill files, which may lack the blank after their colon too.
const OTHERS: [&str; 3] = ["allowed-tools", "metadata", "version"];

/// Whether a key that is a text has another value, such as the list `[WIP]`.
pub(crate) fn is_misread(node: &Located<Node>) -> bool {
    let Node::Map(entries) = &node.value else { return true };
    entries.iter().any(|(key, value)| {
        let is_text = matches!(&key.value, Node::Text(key) if TEXTS.contains(&&*key.text));
        is_text && !matches!(value.value, Node::Text(_))
    })
}

/// Parses frontmatter as if the values that are not YAML were quoted, with a warning for each. `None` if there
/// are none, or if it is not YAML with quotes either.
pub(crate) fn parse(
    frontmatter: &str,
    file: &Arc<str>,
    first_line: usize,
    problems: &Problems,
) -> Option<Option<Located<Node>>> {
    // YAML permits no tabs there.
    let untabbed = |line: &str| {
        let (start, rest) = line.split_at_checked(indent(line)).unwrap_or_default();
        start.replace('\t', "  ") + rest
    };
    let lines: Vec<String> = frontmatter.lines().map(untabbed).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut mended = Mended { file, first_line, text: String::new(), found: Vec::new() };
    if let Some(at) = frontmatter.lines().zip(&lines).position(|(line, untabbed)| line != *untabbed)
    {
        let at = Spot { file: Arc::clone(file), line: first_line + at, column: 1 };
        let message = "a line begins with a tab; it is read as two blanks";
        mended.found.push(Diagnostic::warning(&at, message).help("write blanks"));
    }
    mended.block(&lines, 0);
    let Mended { text, found, .. } = mended;
    if found.is_empty() {
        return None;
    }
    let node = yaml::parse(&text, file, first_line).ok()?;
    found.into_iter().for_each(|problem| problems.push(problem));
    Some(node)
}

struct Mended<'a> {
    file: &'a Arc<str>,
    first_line: usize,
    text: String,
    found: Vec<Diagnostic>,
}

impl Mended<'_> {
    /// Adds lines of one level, which begin at an index of all lines.
    fn block(&mut self, lines: &[&str], first: usize) {
        let level =
            lines.iter().find(|line| !line.trim().is_empty()).map_or(0, |line| indent(line));
        let mut at = 0;
        while let Some((line, rest)) = lines.get(at..).and_then(<[&str]>::split_first) {
            let is_inside = |line: &&&str| line.trim().is_empty() || indent(line) > level;
            let inside = rest.iter().take_while(is_inside).count();
            let inside = rest.get(..inside).unwrap_or_default();
            self.entry(line, inside, first + at);
            at += 1 + inside.len();
        }
    }

    /// Adds an entry: its first line, and those that are indented below it.
    fn entry(&mut self, line: &str, inside: &[&str], at: usize) {
        let whole =
            [line].iter().chain(inside).fold(String::new(), |text, line| text + line + "\n");
        let Some((start, key, value)) = split(line).filter(|_| !self.is_sound(&whole)) else {
            self.text.push_str(&whole);
            return;
        };
        if value.is_empty() || value.starts_with(['|', '>']) {
            // Its parts may be mended.
            self.text.push_str(&format!("{start}{key}: {value}\n"));
            match value.is_empty() {
                true => self.block(inside, at + 1),
                false => inside.iter().for_each(|line| self.plain(line)),
            }
            return;
        }
        let parts = [value].into_iter().chain(inside.iter().map(|line| line.trim()));
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        let text = parts.join(" ");
        self.warn(key, &text, (at, indent(line)));
        self.plain(&format!("{start}{key}: '{}'", without_quotes(&text).replace('\'', "''")));
        // The lines after it keep their numbers.
        inside.iter().for_each(|_| self.plain(""));
    }

    fn plain(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Whether an entry is YAML by itself, and a text where it must be one.
    fn is_sound(&self, entry: &str) -> bool {
        match yaml::parse(entry, self.file, 1) {
            Ok(Some(node)) => !is_misread(&node),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    fn warn(&mut self, key: &str, text: &str, (line, before): (usize, usize)) {
        let message = match text.contains(": ") || text.ends_with(':') {
            true => "a text with `: ` in it is not quoted; it is read as if it were",
            false => "a text that must be quoted is not; it is read as if it were",
        };
        let column = before + key.chars().count() + 2;
        let at = Spot { file: Arc::clone(self.file), line: self.first_line + line, column };
        self.found.push(Diagnostic::warning(&at, message).help(format!("write {key}: \"…\"")));
    }
}

/// The number of blanks before a line.
fn indent(line: &str) -> usize {
    line.chars().take_while(|c| matches!(c, ' ' | '\t')).count()
}

/// Splits the line of a key: blanks before it, key, and value.
fn split(line: &str) -> Option<(&str, &str, &str)> {
    let (start, rest) = line.split_at_checked(indent(line))?;
    let (key, value) = rest.split_once(':')?;
    let is_name = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let is_known = TEXTS.contains(&key) || OTHERS.contains(&key);
    let is_key = is_name && (value.is_empty() || value.starts_with([' ', '\t']) || is_known);
    is_key.then(|| (start, key, value.trim()))
}

/// A text without the quotes around it, if they enclose it: `'It's good'`, and not `"a" or "b"`.
fn without_quotes(text: &str) -> &str {
    let enclosed = |quote: char| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (inner.matches(quote).count() % 2 == 1).then_some(inner)
    };
    enclosed('\'').or_else(|| enclosed('"')).unwrap_or(text)
}

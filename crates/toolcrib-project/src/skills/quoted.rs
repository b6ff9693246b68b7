//! Frontmatter that is nearly YAML: an unquoted text with `: ` in it, as in `description: Use this:
//! when x`. Other readers of skill files accept it, so such files exist.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, Spot};

use super::yaml::{self, Node};

/// The first characters of values that are not plain text: quotes, lists, maps, blocks, comments
/// and the like.
const NOT_PLAIN: &[char] =
    &['"', '\'', '[', ']', '{', '}', '|', '>', '&', '*', '!', '%', '@', '`', '#', '-', '?', ','];

/// Parses frontmatter as if the values of top-level keys with a `: ` in them were quoted, with a
/// warning for each. `None` if there are none, or if it is not YAML with quotes either.
pub(super) fn parse(
    frontmatter: &str,
    file: &Arc<str>,
    first_line: usize,
    problems: &Problems,
) -> Option<Option<Located<Node>>> {
    let mut text = String::with_capacity(frontmatter.len() + 16);
    let mut found = Vec::new();
    for (index, line) in frontmatter.split_inclusive('\n').enumerate() {
        let Some((key, value, end)) = unquoted(line) else {
            text.push_str(line);
            continue;
        };
        let column = key.chars().count() + 1;
        found.push((Spot { file: Arc::clone(file), line: first_line + index, column }, key));
        text.push_str(key);
        text.push('\'');
        text.push_str(&value.replace('\'', "''"));
        text.push('\'');
        text.push_str(end);
    }
    if found.is_empty() {
        return None;
    }
    let node = yaml::parse(&text, file, first_line).ok()?;
    for (at, key) in found {
        let message = "a text with `: ` in it is not quoted; it is read as if it were";
        problems.push(
            Diagnostic::warning(&at, message).help(format!("write {} \"…\"", key.trim_end())),
        );
    }
    Some(node)
}

/// Splits the line of a top-level key whose value needs quotes and has none: key with colon and
/// space, value, end of the line.
fn unquoted(line: &str) -> Option<(&str, &str, &str)> {
    let colon = line.find(": ")?;
    let (name, rest) = line.split_at(colon);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let value = rest.get(1..)?.trim();
    // A part that looks like a comment is treated as one, but belongs to the text if that needs
    // quotes.
    let text = value.split(" #").next()?;
    let needs_quotes = text.contains(": ") || text.ends_with(':');
    if !is_name || !needs_quotes || value.starts_with(NOT_PLAIN) {
        return None;
    }
    let start = line.len() - rest.get(1..)?.trim_start().len();
    let (key, value_and_end) = line.split_at(start);
    let (value, end) = value_and_end.split_at(value.len());
    Some((key, value, end))
}

//! Checks texts that users read for the phrases that `docs/internal/style.md` replaces, and limits them in
//! comments.

use regex_lite::Regex;

use crate::{problem::Problem, workspace::Workspace};

/// The phrases, each with its advice. `docs/internal/style.md` has an example for each.
const PHRASES: [(&str, &str); 13] = [
    (r"(?:^|[.;:] )What [a-z]+ ", "begin with the noun instead of `What …`"),
    (r"[.:;,(] [Ww]ho (?:has|is|does|[a-hj-z][a-z]+s)\b", "name the person instead of `who …`"),
    (r"\b[Ww]hoever\b", "name the person instead of `whoever`"),
    (r"\b(?:[Nn]obody|[Ss]omebody)\b", "name the person, or write `none`"),
    (r"\b(?:is|are|was) no (?:[a-km-z][a-z]+|l[a-np-z][a-z]*)\b", "write `is not a …`"),
    (r"\bof (?:its|our|one's|their|his) own\b", "write `its`, `our` or `a separate …`"),
    (r"\bbehind (?:the|it|a|what|its)\b", "write `after`, or name the relation"),
    (r"\bstands?\b", "write `is`, `appears` or `applies`"),
    (r"\bholds?\b", "write `contains`, `has`, `keeps` or `is true`"),
    (r"\b(?:is|are|was) told\b", "write `receives` or `is informed`"),
    (r"\bgiven again\b", "write `can be repeated` or `repeat`"),
    (r"\bmade anew\b", "write `recreated`"),
    (r"\b[Tt]ake in\b|\b[Tt]urns? the matter\b", "write `import` or `change the result`"),
];

/// Text before a hit that makes it plain: `there is no …`, and a word in quotes or called as code.
const PLAIN_BEFORE: [&str; 5] = ["here ", "`", "\"", "on ", "."];

/// Maximum number of hits of one phrase per 10,000 words of comments.
const DENSITY: usize = 2;

/// The page that quotes the phrases, and the record of earlier releases.
const LEFT_OUT: [&str; 2] = ["docs/internal/style.md", "CHANGELOG.md"];

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let phrases: Vec<_> = PHRASES
        .iter()
        .filter_map(|(text, advice)| Some((Regex::new(text).ok()?, *advice)))
        .collect();
    let mut found = Vec::new();
    let mut comments = Comments::new();
    for path in workspace.files(&[".", "crates", "docs", "examples"], "md")? {
        let shown = workspace.shown(&path);
        if !LEFT_OUT.contains(&shown.as_str()) {
            let text = workspace.read(&path)?;
            hits(&shown, text.lines().enumerate(), &phrases, &mut found);
            comments.add(text.lines(), &phrases);
        }
    }
    for path in workspace.files(&["crates", "examples", "benches", "testbed", "xtask"], "rs")? {
        let (shown, text) = (workspace.shown(&path), workspace.read(&path)?);
        comments.add(text.lines().map(str::trim).filter(|line| line.starts_with("//")), &phrases);
        if shown.contains("/src/") && shown.starts_with("crates/") {
            hits(&shown, visible(&text), &phrases, &mut found);
        }
    }
    comments.check(&mut found);
    if found.is_empty() {
        return Ok(());
    }
    Err(Problem::new(found.join("\n"), "docs/internal/style.md shows what to write instead"))
}

/// The lines of a source file that users read: documentation comments, and lines with a string.
fn visible(source: &str) -> impl Iterator<Item = (usize, &str)> {
    source.lines().enumerate().filter_map(|(number, line)| {
        let line = line.trim();
        if line.starts_with("///") || line.starts_with("//!") {
            return Some((number, line));
        }
        let is_text = !line.starts_with("//") && (line.contains('"') || line.ends_with('\\'));
        is_text.then_some((number, line))
    })
}

fn hits<'a>(
    file: &str,
    lines: impl Iterator<Item = (usize, &'a str)>,
    phrases: &[(Regex, &str)],
    found: &mut Vec<String>,
) {
    let mut is_code = false;
    for (number, line) in lines {
        let line = line.trim_start_matches(['/', '!', ' ']);
        if line.starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let advice = phrases.iter().filter(|(phrase, _)| is_hit(line, phrase));
            found.extend(
                advice.map(|(_, advice)| format!("{file}:{}: {advice}: {line}", number + 1)),
            );
        }
    }
}

fn is_hit(line: &str, phrase: &Regex) -> bool {
    phrase.find_iter(line).any(|hit| {
        let before = line.get(..hit.start()).unwrap_or_default();
        !PLAIN_BEFORE.iter().any(|plain| before.ends_with(plain))
    })
}

/// Counts the phrases in all comments and documents.
struct Comments {
    words: usize,
    hits: [usize; PHRASES.len()],
}

impl Comments {
    fn new() -> Self {
        Self { words: 0, hits: [0; PHRASES.len()] }
    }

    fn add<'a>(&mut self, lines: impl Iterator<Item = &'a str>, phrases: &[(Regex, &str)]) {
        for line in lines {
            self.words += line.split_whitespace().count();
            let line = line.trim_start_matches(['/', '!', ' ']);
            for (count, (phrase, _)) in self.hits.iter_mut().zip(phrases) {
                *count += usize::from(is_hit(line, phrase));
            }
        }
    }

    fn check(&self, found: &mut Vec<String>) {
        eprintln!("{} words in comments and documents", self.words);
        for (count, (phrase, _)) in self.hits.iter().zip(PHRASES) {
            eprintln!("  {count:5}  {phrase}");
            if count * 10_000 > DENSITY * self.words {
                found.push(format!(
                    "`{phrase}` is used {count} times in {} words of comments; at most {DENSITY} per \
                     10,000 are allowed",
                    self.words
                ));
            }
        }
    }
}

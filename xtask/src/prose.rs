//! Checks texts that users read for the phrases that `docs/internal/style.md` replaces, limits them in comments,
//! and checks the first sentences of documentation comments.

use regex_lite::Regex;

use crate::{problem::Problem, workspace::Workspace};

/// The phrases, each with its advice. `docs/internal/style.md` has an example for each.
const PHRASES: [(&str, &str); 16] = [
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
    (r"\banew\b", "write `again`, or the verb with `re`: `rewritten`"),
    (r"\b(?:at most|than|of|after|only) so many\b", "write `this number of` or name the limit"),
    (r"(?:^|[.:;,] )[Aa]s there\b", "say it again, or link to it"),
    (r"\bNothing any more\b", "write what is over: `expired`, `ended`, `removed`"),
    (r"\b[Tt]ake in\b|\b[Tt]urns? the matter\b", "write `import` or `change the result`"),
];

/// Text before a hit that makes it plain: `there is no …`, and a word in quotes or called as code.
const PLAIN_BEFORE: [&str; 5] = ["here ", "`", "\"", "on ", "."];

/// Maximum number of hits of one phrase per 10,000 words of comments.
const DENSITY: usize = 2;

/// The fewest words of a public item's first sentence.
const LEAST_WORDS: usize = 4;

/// The page that quotes the phrases, and the record of earlier releases.
const LEFT_OUT: [&str; 2] = ["docs/internal/style.md", "CHANGELOG.md"];

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let phrases: Vec<_> = PHRASES
        .iter()
        .filter_map(|(text, advice)| Some((Regex::new(text).ok()?, *advice)))
        .collect();
    let mut found = Vec::new();
    let mut comments = Comments::new();
    for path in workspace.files(&[".", "crates", "deploy", "docs", "examples"], "md")? {
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
            first_sentences(&shown, &text, &mut found);
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

/// Words that say nothing alone.
const FUNCTION_WORDS: &str = " a an the it its they them their there as any more none nothing not no this that \
    these those of in on for to with by from and or but so only once all both same other others then is are \
    was be may also if at one where when ";

/// Checks the first sentence of each documentation comment.
fn first_sentences(file: &str, source: &str, found: &mut Vec<String>) {
    let lines: Vec<_> = source.lines().map(str::trim).collect();
    let mut at = 0;
    while at < lines.len() {
        let doc = lines.iter().skip(at).map_while(|line| line.strip_prefix("///"));
        let doc: Vec<_> = doc.map(str::trim).collect();
        if !doc.is_empty() {
            let paragraph = doc.split(|line| line.is_empty()).next().unwrap_or_default().join(" ");
            let end = paragraph.find(". ").map_or(paragraph.len(), |end| end + 1);
            let item = lines.iter().skip(at + doc.len()).find(|line| !line.starts_with("#["));
            let sentence = paragraph.get(..end).unwrap_or(&paragraph);
            if let Some(advice) = weakness(sentence, item.copied().unwrap_or_default()) {
                found.push(format!("{file}:{}: {advice}: {sentence}", at + 1));
            }
        }
        at += doc.len().max(1);
    }
}

/// Why a first sentence says too little about its item, if so. A variant or field may refer to the noun
/// of its type.
fn weakness(sentence: &str, item: &str) -> Option<&'static str> {
    let words: Vec<_> = sentence.split_whitespace().collect();
    let says_something = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '`').to_lowercase();
        !FUNCTION_WORDS.contains(&format!(" {word} "))
    };
    if !words.iter().any(says_something) {
        return Some("write a sentence with a noun and a verb");
    }
    let is_public_item = item.strip_prefix("pub ").is_some_and(|item| {
        let kinds = ["fn", "async fn", "const", "struct", "enum", "trait", "type", "mod", "static"];
        kinds.iter().any(|kind| item.starts_with(&format!("{kind} ")))
    });
    if is_public_item && words.len() < LEAST_WORDS {
        return Some("say in four words or more what the item is for");
    }
    let is_item = is_public_item || item.contains("fn ") || item.contains("const ");
    let begins_with_pronoun =
        words.first().is_some_and(|word| ["It", "They", "Those", "These", "That"].contains(word));
    (is_item && begins_with_pronoun).then_some("begin with the noun instead of a pronoun")
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

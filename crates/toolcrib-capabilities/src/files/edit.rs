//! Replacements of exact texts, all or none, and the nearest lines where one is not found.

use std::{collections::HashSet, fmt, ops::Range, time::Duration};

use similar::{Algorithm, TextDiff};
use toolcrib_core::TextOrigin;

use super::{
    line_ends::{LineEnds, NewLineEnds, with_line_feeds},
    shown::{LookAlike, places},
};

/// The lines of a file that are compared with a text that was not found. More would take seconds.
const COMPARED_LINES: usize = 20_000;

/// The lines of that text that are compared.
const COMPARED_OLD_LINES: usize = 8;

/// The characters of a line that are compared and shown.
const LINE_CHARS: usize = 200;

/// The most lines of a hint.
const HINT_LINES: usize = 10;

/// The most places that are listed.
const LISTED_PLACES: usize = 10;

/// The least similarity of a hint, from 0 to 1.
const LEAST_ALIKE: f64 = 0.4;

/// The bytes of a new text that does not occur by chance.
const LEAST_NEW: usize = 8;

/// The time for the smallest difference; after it, the difference is larger than necessary.
const DIFF_TIME: Duration = Duration::from_secs(1);

/// The unchanged lines around each change of a difference.
const DIFF_CONTEXT: usize = 3;

/// One replacement of a text in a file. Both texts are taken literally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The text to replace. Unless `all` is set, it must occur exactly once.
    pub old: String,
    /// The new text.
    pub new: String,
    /// Whether every occurrence is replaced.
    pub all: bool,
}

impl Replacement {
    /// A replacement of a text that occurs exactly once.
    pub fn new(old: impl Into<String>, new: impl Into<String>) -> Self {
        Self { old: old.into(), new: new.into(), all: false }
    }

    /// Replaces every occurrence of the text.
    #[must_use]
    pub fn all(mut self) -> Self {
        self.all = true;
        self
    }
}

/// Why a text is not replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditProblem {
    /// The text to replace is empty.
    Empty,
    /// Both texts are the same.
    Same,
    /// Both texts are the same but for their line ends, which an edit keeps.
    SameButLineEnds,
    /// The text does not occur.
    NotFound {
        /// The line where the new text occurs already, if it does: the edit may be done.
        new_at: Option<usize>,
        /// The lines of the text to replace, with spaces and tabs made visible, if the nearest lines
        /// differ in them only; else none.
        spaces: Vec<String>,
        /// The nearest lines with their numbers, if some are similar. With `spaces`, made visible too.
        nearest: Vec<(usize, String)>,
    },
    /// The new text looks like a token of a chat template as it is shown, and the file does not have
    /// this text: it was copied from where the real characters are not shown.
    LookAlike {
        /// The part of the new text.
        written: String,
        /// The characters that are shown so, escaped.
        real: String,
    },
    /// The text occurs more than once.
    Several {
        /// How often.
        count: usize,
        /// The first lines where it begins, from 1.
        lines: Vec<usize>,
    },
}

impl fmt::Display for EditProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the text to replace is empty"),
            Self::Same => f.write_str("both texts are the same"),
            Self::SameButLineEnds => f.write_str(
                "both texts are the same but for line ends, and an edit keeps the line ends of the \
                 file; to change them, write the whole file with other ones",
            ),
            Self::NotFound { new_at, spaces, nearest, .. } => {
                f.write_str("the text to replace does not occur exactly")?;
                if let Some(line) = new_at {
                    write!(f, ", but the new text does, at line {line}: it may be done already")?;
                }
                if nearest.is_empty() {
                    return f.write_str("; read the file again");
                }
                f.write_str(match spaces.is_empty() {
                    true => "; the nearest lines are:",
                    false => "; only white space differs (`\u{b7}` is a space, `\u{2192}` a tab). The file has:",
                })?;
                nearest.iter().try_for_each(|(line, text)| write!(f, "\n{line}: {text}"))?;
                if !spaces.is_empty() {
                    f.write_str("\nThe text to replace has:")?;
                }
                spaces.iter().try_for_each(|text| write!(f, "\n{text}"))
            }
            Self::LookAlike { written, real } => write!(
                f,
                "the new text has `{written}`, which is only how `{real}` is shown to you; write the \
                 real characters, without escapes"
            ),
            Self::Several { count, lines } => {
                let lines: Vec<_> = lines.iter().map(usize::to_string).collect();
                write!(
                    f,
                    "the text to replace occurs {count} times, at the lines {}; add lines around \
                     it until it is unique, or replace all of them",
                    lines.join(", ")
                )
            }
        }
    }
}

/// A text after replacements.
pub(super) struct ReplacedText {
    pub(super) text: String,
    /// The line of the first change, from 1.
    pub(super) line: usize,
    /// The number of replaced occurrences.
    pub(super) count: usize,
}

impl From<LookAlike> for EditProblem {
    fn from(LookAlike { written, real }: LookAlike) -> Self {
        Self::LookAlike { written, real }
    }
}

/// The text with the replacements, one after the other, each in the result of those before it. The
/// text was `shown` to their author by a rule, or as it is. Line ends are found as LF, and written as the
/// text has them.
///
/// # Errors
/// The number of the first impossible replacement, from 1, and the reason.
pub(super) fn replace(
    text: &str,
    replacements: &[Replacement],
    shown: Option<TextOrigin>,
) -> Result<ReplacedText, (usize, EditProblem)> {
    let mut replaced = ReplacedText { text: text.to_owned(), line: usize::MAX, count: 0 };
    let mut line_ends = LineEnds::of(text);
    for (at, replacement) in replacements.iter().enumerate() {
        let failed = |problem| (at + 1, problem);
        let (edited, new, line) =
            replace_one(&replaced.text, replacement, line_ends, shown).map_err(failed)?;
        let look_alike = shown.and_then(|origin| LookAlike::first(&edited, &new, text, origin));
        look_alike.map_or(Ok(()), |problem| Err(failed(problem.into())))?;
        if line_ends == LineEnds::None {
            line_ends = LineEnds::of(&edited);
        }
        let line = replaced.line.min(line);
        replaced = ReplacedText { text: edited, line, count: replaced.count + new.len() };
    }
    Ok(replaced)
}

/// The text with one replacement, the places of the new text, and the line of the first one.
fn replace_one(
    text: &str,
    Replacement { old, new, all }: &Replacement,
    line_ends: LineEnds,
    shown: Option<TextOrigin>,
) -> Result<(String, Vec<Range<usize>>, usize), EditProblem> {
    if old.is_empty() {
        return Err(EditProblem::Empty);
    }
    if old == new {
        return Err(EditProblem::Same);
    }
    let mut new_ends = NewLineEnds::of(text, line_ends, new);
    let new = with_line_feeds(new);
    if with_line_feeds(old) == new {
        return Err(EditProblem::SameButLineEnds);
    }
    let line_of = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let places = places(text, old, shown);
    let Some(first) = places.first() else {
        return Err(not_found(&with_line_feeds(text), &with_line_feeds(old), &new));
    };
    let line = line_of(first.start);
    if places.len() > 1 && !all {
        let lines = places.iter().take(LISTED_PLACES).map(|place| line_of(place.start)).collect();
        return Err(EditProblem::Several { count: places.len(), lines });
    }
    let mut edited = String::with_capacity(text.len());
    let (mut replaced, mut copied) = (Vec::with_capacity(places.len()), 0);
    for place in places {
        // Of two that overlap, the first one.
        let Some(before) = text.get(copied..place.start) else { continue };
        edited.push_str(before);
        let part = new_ends.of_part(&new, &place);
        replaced.push(edited.len()..edited.len() + part.len());
        edited.push_str(&part);
        copied = place.end;
    }
    edited.push_str(text.get(copied..).unwrap_or_default());
    Ok((edited, replaced, line))
}

/// All texts have line feeds as line ends.
fn not_found(text: &str, old: &str, new: &str) -> EditProblem {
    let new_at = (new.trim().len() >= LEAST_NEW).then(|| text.find(new)).flatten();
    let new_at = new_at.map(|at| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count());
    let mut nearest = nearest(text, old);
    let mut spaces = Vec::new();
    let differs_in_spaces = !nearest.is_empty()
        && nearest.len() == old.lines().count()
        && nearest.iter().zip(old.lines()).all(|((_, line), old)| {
            let solid = |text: &str| text.split_whitespace().collect::<String>();
            solid(line) == solid(shortened(old))
        });
    if differs_in_spaces {
        spaces = old.lines().map(|line| visible(shortened(line))).collect();
        for (_, line) in &mut nearest {
            *line = visible(line);
        }
    }
    EditProblem::NotFound { new_at, spaces, nearest }
}

/// A line with visible spaces and tabs.
fn visible(line: &str) -> String {
    line.replace(' ', "\u{b7}").replace('\t', "\u{2192}")
}

/// The difference of two texts in the unified format, without the names of files.
pub(super) fn diff(old: &str, new: &str) -> String {
    let mut config = TextDiff::configure();
    let diff = config.algorithm(Algorithm::Myers).timeout(DIFF_TIME).diff_lines(old, new);
    diff.unified_diff().context_radius(DIFF_CONTEXT).to_string()
}

/// The lines of a text that share most words with the lines of another.
fn nearest(text: &str, wanted: &str) -> Vec<(usize, String)> {
    let wanted: Vec<_> = wanted.lines().take(COMPARED_OLD_LINES).map(shortened).collect();
    let wanted_words: Vec<_> = wanted.iter().map(|line| words(line)).collect();
    let lines: Vec<_> = text.lines().take(COMPARED_LINES).map(shortened).collect();
    let line_words: Vec<_> = lines.iter().map(|line| words(line)).collect();
    let likeness = |start: usize| {
        let window = line_words.iter().skip(start);
        let sum: f64 = window.zip(&wanted_words).map(|(one, other)| alike(one, other)).sum();
        sum / f64::from(u32::try_from(wanted_words.len().max(1)).unwrap_or(u32::MAX))
    };
    let best = (0..lines.len())
        .map(|start| (start, likeness(start)))
        .filter(|(_, alike)| *alike >= LEAST_ALIKE)
        // The first of several.
        .rev()
        .max_by(|one, other| one.1.total_cmp(&other.1));
    let Some((start, _)) = best else { return Vec::new() };
    let shown = lines.iter().enumerate().skip(start).take(wanted.len().min(HINT_LINES));
    shown.map(|(at, line)| (at + 1, (*line).to_owned())).collect()
}

fn shortened(line: &str) -> &str {
    let end = line.char_indices().nth(LINE_CHARS).map_or(line.len(), |(at, _)| at);
    line.get(..end).unwrap_or_default()
}

fn words(line: &str) -> HashSet<&str> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// The share of words that both have, from 0 to 1. Two lines without words are not similar.
fn alike(one: &HashSet<&str>, other: &HashSet<&str>) -> f64 {
    let most = one.len().max(other.len());
    if most == 0 {
        return 0.0;
    }
    let common = u32::try_from(one.intersection(other).count()).unwrap_or(u32::MAX);
    f64::from(common) / f64::from(u32::try_from(most).unwrap_or(u32::MAX))
}

//! The replacement of one exact text, and the nearest lines where it is not found.

use std::{collections::HashSet, fmt};

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

/// Why a text is not replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditProblem {
    /// The text to replace is empty.
    Empty,
    /// Both texts are the same.
    Same,
    /// The text does not occur.
    NotFound {
        /// Whether it would occur with the line ends of the file, CR LF.
        with_other_line_ends: bool,
        /// The nearest lines with their numbers, if some are similar.
        nearest: Vec<(usize, String)>,
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
            Self::NotFound { with_other_line_ends: true, .. } => f.write_str(
                "the text to replace does not occur, because the lines of the file end with CR LF; \
                 replace single lines",
            ),
            Self::NotFound { nearest, .. } => {
                f.write_str("the text to replace does not occur exactly")?;
                if nearest.is_empty() {
                    return f.write_str("; read the file again");
                }
                f.write_str("; the nearest lines are:")?;
                nearest.iter().try_for_each(|(line, text)| write!(f, "\n{line}: {text}"))
            }
            Self::Several { count, lines } => {
                let lines: Vec<_> = lines.iter().map(usize::to_string).collect();
                write!(
                    f,
                    "the text to replace occurs {count} times, at the lines {}; add lines around \
                     it until it is unique",
                    lines.join(", ")
                )
            }
        }
    }
}

/// The text with `old` replaced by `new`, both taken literally, and the line of the change.
pub(super) fn replace_once(
    text: &str,
    old: &str,
    new: &str,
) -> Result<(String, usize), EditProblem> {
    if old.is_empty() {
        return Err(EditProblem::Empty);
    }
    if old == new {
        return Err(EditProblem::Same);
    }
    let line_of = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let mut places = text.match_indices(old).map(|(at, _)| at);
    let Some(at) = places.next() else {
        let with_other_line_ends =
            !old.contains('\r') && old.contains('\n') && text.contains(&old.replace('\n', "\r\n"));
        return Err(EditProblem::NotFound { with_other_line_ends, nearest: nearest(text, old) });
    };
    // Overlapping places count too: either could be meant.
    let after = at + old.chars().next().map_or(1, char::len_utf8);
    let overlapping = text.get(after..).and_then(|rest| rest.find(old)).map(|next| after + next);
    let others: Vec<_> = places.collect();
    if overlapping.is_some() || !others.is_empty() {
        let all = std::iter::once(at).chain(others.iter().copied());
        let all: Vec<_> =
            if others.is_empty() { all.chain(overlapping).collect() } else { all.collect() };
        let lines = all.iter().take(LISTED_PLACES).map(|at| line_of(*at)).collect();
        return Err(EditProblem::Several { count: all.len(), lines });
    }
    let (before, after) = (text.get(..at), text.get(at + old.len()..));
    let edited = [before.unwrap_or_default(), new, after.unwrap_or_default()].concat();
    Ok((edited, line_of(at)))
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

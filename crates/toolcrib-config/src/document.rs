//! A TOML file as text and as positions.

use std::{ops::Range, sync::Arc};

use toml::de::DeTable;

use crate::{diagnostic::Diagnostic, problems::Problems, spot::Spot, suggest, table::Table};

/// How many errors of syntax are reported; the rest are only counted.
const MOST_ERRORS: usize = 100;

/// How many bytes of a text there are between two counts of its characters.
const COUNT_BYTES: usize = 1024;

/// The text of a file, with its positions.
#[derive(Debug)]
pub struct Document {
    file: Arc<str>,
    text: String,
    /// The start offset of each line.
    lines: Vec<usize>,
    /// How many characters begin before every [`COUNT_BYTES`]th byte: the whole text can be one line, and
    /// counting from its start for each place in it would take minutes.
    characters: Vec<usize>,
}

impl Document {
    /// A text with the name of its file.
    pub fn new(file: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        let text = text.into();
        let breaks = text.match_indices('\n').map(|(offset, _)| offset + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        let blocks = text.as_bytes().chunks(COUNT_BYTES).map(begun_in);
        let counts = blocks.scan(0, |sum, begun| {
            *sum += begun;
            Some(*sum)
        });
        let characters = std::iter::once(0).chain(counts).collect();
        Self { file: file.into(), text, lines, characters }
    }

    /// Reads the top level of the document, called `this file` in messages.
    ///
    /// Syntax errors are recorded, and the result is `None`: the parsed remainder would only raise
    /// false alarms.
    pub fn read<T>(&self, problems: &Problems, read: impl FnOnce(&Table<'_>) -> T) -> Option<T> {
        let (root, errors) = DeTable::parse_recoverable(&self.text);
        self.report_syntax(&errors, problems);
        errors.is_empty().then(|| {
            Table::new(self, problems, root.get_ref(), self.spot(0), "this file").read(read)
        })
    }

    /// Reports syntax errors. A duplicate table is reported once, and not again for each of its
    /// keys.
    fn report_syntax(&self, errors: &[toml::de::Error], problems: &Problems) {
        let mut twice: Vec<&str> = Vec::new();
        for error in errors.iter().take(MOST_ERRORS) {
            let offset = error.span().map_or(0, |span| span.start);
            let is_duplicate = error.message() == "duplicate key";
            let header = is_duplicate.then(|| self.header(offset)).flatten();
            let is_told = |name: &str| {
                let inside =
                    |outer: &&str| name.strip_prefix(outer).map(|rest| rest.chars().next());
                twice.iter().any(|outer| matches!(inside(outer), Some(None | Some('.'))))
            };
            let problem = match header {
                Some((name, _)) if is_told(name) => continue,
                Some((name, true)) => {
                    twice.push(name);
                    let message = format!("table {} is already defined", suggest::quoted([name]));
                    let help = format!(
                        "make them one table; where there may be several, write `[[{name}]]` above \
                         each"
                    );
                    Diagnostic::error(&self.spot(offset), message).help(help)
                }
                _ => {
                    let message = format!("this is not TOML: {}", error.message());
                    Diagnostic::error(&self.spot(offset), message)
                }
            };
            problems.push(problem);
        }
        if let Some(next) = errors.get(MOST_ERRORS) {
            let message = format!("and {} more errors from here on", errors.len() - MOST_ERRORS);
            let offset = next.span().map_or(0, |span| span.start);
            problems.push(Diagnostic::error(&self.spot(offset), message));
        }
    }

    /// The name of the table that contains an offset, as written in its header, and whether the
    /// offset is inside that header.
    fn header(&self, offset: usize) -> Option<(&str, bool)> {
        let line_of = self.lines.partition_point(|start| *start <= offset);
        let lines = self.text.lines().take(line_of).enumerate();
        let (number, line) = lines.filter(|(_, line)| line.trim_start().starts_with('[')).last()?;
        let name = line.trim_start().trim_start_matches('[').split(']').next()?.trim();
        Some((name, number + 1 == line_of))
    }

    /// The place of an offset in bytes.
    pub(crate) fn spot(&self, offset: usize) -> Spot {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let column = match offset <= self.text.len() {
            true => 1 + self.begun_between(start, offset),
            false => 1,
        };
        Spot { file: Arc::clone(&self.file), line, column }
    }

    /// How many characters begin between two offsets, of which the first begins a line.
    fn begun_between(&self, start: usize, end: usize) -> usize {
        // Few lines are longer.
        match end - start <= COUNT_BYTES {
            true => begun_in(self.text.as_bytes().get(start..end).unwrap_or_default()),
            false => self.begun_before(end).saturating_sub(self.begun_before(start)),
        }
    }

    /// How many characters begin before an offset.
    fn begun_before(&self, offset: usize) -> usize {
        let block = offset / COUNT_BYTES;
        let rest = self.text.as_bytes().get(block * COUNT_BYTES..offset).unwrap_or_default();
        self.characters.get(block).copied().unwrap_or_default() + begun_in(rest)
    }

    /// The text of a span.
    pub(crate) fn written(&self, span: Range<usize>) -> &str {
        self.text.get(span).unwrap_or_default()
    }
}

/// How many characters begin in a piece of UTF-8.
fn begun_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let document = Document::new("f", "é = 1\n\nü = 'x'");
        let place = |offset| {
            let spot = document.spot(offset);
            (spot.line, spot.column)
        };
        assert_eq!(place(0), (1, 1));
        assert_eq!(place(2), (1, 2));
        assert_eq!(place(7), (2, 1));
        assert_eq!(place(13), (3, 5));
        assert_eq!(place(1000), (3, 1));
        let long = Document::new("f", format!("{}x\n", "é".repeat(COUNT_BYTES)));
        assert_eq!(long.spot(2 * COUNT_BYTES).column, COUNT_BYTES + 1);
        assert_eq!(long.spot(COUNT_BYTES - 2).column, COUNT_BYTES / 2);
    }
}

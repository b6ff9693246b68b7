//! A TOML file as text and as positions.

use std::{ops::Range, sync::Arc};

use toml::de::DeTable;

use crate::{diagnostic::Diagnostic, problems::Problems, spot::Spot, suggest, table::Table};

/// The text of a file, with the places in it.
#[derive(Debug)]
pub struct Document {
    file: Arc<str>,
    text: String,
    /// The offset at which each line begins.
    lines: Vec<usize>,
}

impl Document {
    /// A text, with the name that its file has in problems.
    pub fn new(file: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        let text = text.into();
        let breaks = text.match_indices('\n').map(|(offset, _)| offset + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        Self { file: file.into(), text, lines }
    }

    /// Reads the top level of the document, which messages call `this file`.
    ///
    /// With errors of syntax, which are recorded, nothing is read and the answer is `None`: what is
    /// left after them would only raise false alarms.
    pub fn read<T>(&self, problems: &Problems, read: impl FnOnce(&Table<'_>) -> T) -> Option<T> {
        let (root, errors) = DeTable::parse_recoverable(&self.text);
        self.report_syntax(&errors, problems);
        errors.is_empty().then(|| {
            Table::new(self, problems, root.get_ref(), self.spot(0), "this file").read(read)
        })
    }

    /// Reports what is no TOML. A table that stands twice is told once, and not again for all that
    /// stands in it.
    fn report_syntax(&self, errors: &[toml::de::Error], problems: &Problems) {
        let mut twice: Vec<&str> = Vec::new();
        for error in errors {
            let offset = error.span().map_or(0, |span| span.start);
            let header = self.header(offset).filter(|_| error.message() == "duplicate key");
            let is_told = |name: &str| {
                let inside =
                    |outer: &&str| name.strip_prefix(outer).map(|rest| rest.chars().next());
                twice.iter().any(|outer| matches!(inside(outer), Some(None | Some('.'))))
            };
            let problem = match header {
                Some((name, _)) if is_told(name) => continue,
                Some((name, true)) => {
                    twice.push(name);
                    let message = format!("there is a table {} already", suggest::quoted([name]));
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
    }

    /// The name of the table in which an offset lies, as its header has it, and whether the offset
    /// lies in that header.
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
        let before = self.text.get(start..offset).unwrap_or_default();
        Spot { file: Arc::clone(&self.file), line, column: 1 + before.chars().count() }
    }

    /// What stands there, as written.
    pub(crate) fn written(&self, span: Range<usize>) -> &str {
        self.text.get(span).unwrap_or_default()
    }
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
    }
}

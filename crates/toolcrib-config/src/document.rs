//! A TOML file as text and as positions.

use std::{ops::Range, sync::Arc};

use toml::de::DeTable;

use crate::{diagnostic::Diagnostic, problems::Problems, spot::Spot, table::Table};

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
        for error in &errors {
            let at = self.spot(error.span().map_or(0, |span| span.start));
            problems.push(Diagnostic::error(&at, format!("this is not TOML: {}", error.message())));
        }
        errors.is_empty().then(|| {
            Table::new(self, problems, root.get_ref(), self.spot(0), "this file").read(read)
        })
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

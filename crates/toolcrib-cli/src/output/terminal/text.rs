//! The text of a model, as it arrives.

use super::{Markdown, Stream, line, stream};
use crate::output::text::Cleaner;

/// Shows a model's text while it is written, if `is_live`; remembers it in any case.
#[derive(Debug, Default)]
pub(crate) struct LiveText {
    is_live: bool,
    /// The text of the current response.
    text: String,
    cleaner: Cleaner,
    markdown: Markdown,
    /// Whether a part of it is on the terminal.
    is_shown: bool,
}

impl LiveText {
    pub(crate) fn new(is_live: bool) -> Self {
        Self { is_live, ..Self::default() }
    }

    /// Begins another response.
    pub(crate) fn begin(&mut self) {
        *self = Self::new(self.is_live);
    }

    /// Adds a piece. Returns whether the text is being shown.
    pub(crate) fn push(&mut self, piece: &str) -> bool {
        self.text.push_str(piece);
        if let Some(columns) = Stream::Out.columns().filter(|_| self.is_live) {
            let clean = self.cleaner.push(piece);
            self.show(|markdown| markdown.push(&clean, columns));
        }
        self.is_shown
    }

    /// Ends the response. Returns whether any of it was shown.
    pub(crate) fn end(&mut self) -> bool {
        if let Some(columns) = Stream::Out.columns().filter(|_| self.is_live) {
            let rest = self.cleaner.finish();
            self.show(|markdown| markdown.push(&rest, columns) + &markdown.finish(columns));
        }
        self.is_shown
    }

    /// Whether this is the text of the last response, and on the terminal.
    pub(crate) fn shows(&self, answer: &str) -> bool {
        self.is_shown && self.text == answer
    }

    fn show(&mut self, render: impl FnOnce(&mut Markdown) -> String) {
        let rendered = render(&mut self.markdown);
        if rendered.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.is_shown, true) {
            line(Stream::Out, format_args!(""));
        }
        stream(&rendered, self.markdown.column());
    }
}

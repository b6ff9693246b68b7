//! Texts that are parsed later, with errors at character positions.

use std::sync::Arc;

use toolcrib_config::{Spot, Value};

/// A text in which an error may be at one character: a statement, a template.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) value: Arc<str>,
    /// The position of the value.
    pub(crate) at: Spot,
    /// The position of its first character, if the file contains the text literally.
    start: Option<Spot>,
}

impl Text {
    /// A text that is not blank.
    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        let text = value.text()?;
        Some(Self { value: text.value, at: text.at, start: value.text_start() })
    }

    /// A text, which may be blank or empty.
    pub(crate) fn read_any(value: &Value<'_>) -> Option<Self> {
        let text = value.any_text()?;
        Some(Self { value: text.value, at: text.at, start: value.text_start() })
    }

    /// The position of a byte of the text in the file; the position of the value if it is unknown.
    pub(crate) fn place(&self, offset: Option<usize>) -> Spot {
        match (&self.start, offset.and_then(|offset| self.value.get(..offset))) {
            (Some(start), Some(before)) => start.after(before),
            _ => self.at.clone(),
        }
    }
}

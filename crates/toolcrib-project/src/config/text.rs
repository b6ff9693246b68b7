//! Texts that are read again later, by something that counts their characters.

use std::sync::Arc;

use toolcrib_config::{Spot, Value};

/// A text in which something may be wrong at one character: a statement, a template.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) value: Arc<str>,
    /// Where the value stands.
    pub(crate) at: Spot,
    /// Where its first character stands, if the file holds the text as it is.
    start: Option<Spot>,
}

impl Text {
    /// A text that is not blank.
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        let text = value.text()?;
        Some(Self { value: text.value, at: text.at, start: value.text_start() })
    }

    /// A text, be it blank or empty.
    pub(super) fn read_any(value: &Value<'_>) -> Option<Self> {
        let text = value.any_text()?;
        Some(Self { value: text.value, at: text.at, start: value.text_start() })
    }

    /// Where a byte of the text stands in the file; where the value stands if that cannot be told.
    pub(crate) fn place(&self, offset: Option<usize>) -> Spot {
        match (&self.start, offset.and_then(|offset| self.value.get(..offset))) {
            (Some(start), Some(before)) => start.after(before),
            _ => self.at.clone(),
        }
    }
}

//! The differences between a shown text and the real one.

use std::ops::Range;

/// Why a shown text differs from the real one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// A character of a token is shown as its look-alike.
    Token,
    /// Hidden characters are left out.
    Hidden,
    /// A terminal escape sequence is left out.
    Escape,
    /// A carriage return is left out, or is shown as a line feed.
    LineEnd,
}

impl ChangeKind {
    /// The information for a reader about changes of this kind.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Token => "tokens of chat templates are shown as look-alikes",
            Self::Hidden => "hidden characters are left out",
            Self::Escape => "terminal escape sequences are left out",
            Self::LineEnd => "carriage returns are left out",
        }
    }
}

/// A difference between a shown text and the real one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextChange {
    /// The bytes of the shown text: one character, or none.
    pub shown: Range<usize>,
    /// The bytes of the real text.
    pub real: Range<usize>,
    /// The reason.
    pub kind: ChangeKind,
}

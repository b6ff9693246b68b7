//! A match of a pattern of tokens.

use std::ops::Range;

/// A match of a pattern.
pub(crate) struct Candidate<'a> {
    /// The match in the folded text, and what is before and after it.
    pub(crate) token: &'a str,
    pub(crate) before: &'a str,
    pub(crate) after: &'a str,
    /// The match with its own case and letters.
    pub(crate) written: String,
    /// Whether it has letters of another script, full-width forms or invisible characters.
    pub(crate) is_disguised: bool,
    pub(crate) source: Range<usize>,
}

impl Candidate<'_> {
    pub(crate) fn is_role(&self) -> bool {
        self.token.ends_with(':') && !self.token.starts_with('<')
    }
}

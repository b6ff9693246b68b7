//! A match of a pattern of tokens.

use std::ops::Range;

/// A match of a pattern.
pub(super) struct Candidate<'a> {
    /// The match in the folded text, and what is before and after it.
    pub(super) token: &'a str,
    pub(super) before: &'a str,
    pub(super) after: &'a str,
    /// The match with its own case and letters.
    pub(super) written: String,
    /// Whether it has letters of another script, full-width forms or invisible characters.
    pub(super) is_disguised: bool,
    pub(super) source: Range<usize>,
}

impl Candidate<'_> {
    pub(super) fn is_role(&self) -> bool {
        self.token.ends_with(':') && !self.token.starts_with('<')
    }
}

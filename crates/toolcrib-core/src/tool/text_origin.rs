//! Where an untrusted text is from.

use serde::{Deserialize, Serialize};

/// Where an untrusted text is from, which decides what in it is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TextOrigin {
    /// A web page, a message, a row, a definition: what reads like a token of any chat template, or
    /// like the beginning of a turn, is replaced.
    #[default]
    Foreign,
    /// A file or a program of the project: code, which is full of angle brackets, brackets and words
    /// with a colon. Only tokens with a template's exact delimiters are replaced, and roles in a
    /// sequence that frames turns.
    Project,
}

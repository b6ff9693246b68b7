//! Why a step failed.

use std::fmt;

/// Why a step failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct Problem {
    what: String,
    help: String,
}

impl Problem {
    pub(crate) fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), help: help.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nwhat to do: {}", self.what, self.help)
    }
}

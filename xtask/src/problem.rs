//! The error of a step.

use std::{fmt, thread::ScopedJoinHandle};

/// The error of a step, and how to fix it.
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

/// The end of a thread's work.
pub(crate) fn joined(thread: ScopedJoinHandle<'_, Result<(), Problem>>) -> Result<(), Problem> {
    let panicked = |_| Err(Problem::new("a thread panicked", "look at the lines above"));
    thread.join().unwrap_or_else(panicked)
}

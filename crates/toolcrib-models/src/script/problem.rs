//! What can be wrong with a script.

use std::{cell::RefCell, fmt, ops::Range};

/// A script that cannot be used, with everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", list(.problems))]
pub struct ScriptErrors {
    problems: Vec<ScriptProblem>,
}

impl ScriptErrors {
    /// The problems, in the order in which they stand in the text; never empty.
    pub fn problems(&self) -> &[ScriptProblem] {
        &self.problems
    }
}

/// One thing that is wrong with a script. Prints as `LINE:COLUMN: message`, with the help on a
/// line of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptProblem {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl fmt::Display for ScriptProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        self.help
            .iter()
            .try_for_each(|help| write!(f, "\n  help: {help}"))
    }
}

fn list(problems: &[ScriptProblem]) -> String {
    problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Collects the problems of one text while it is read.
#[derive(Debug)]
pub(super) struct Problems<'t> {
    text: &'t str,
    found: RefCell<Vec<ScriptProblem>>,
}

impl<'t> Problems<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            found: RefCell::default(),
        }
    }

    /// Records a problem at a place, given in bytes of the text.
    pub(super) fn add(&self, at: &Range<usize>, message: impl Into<String>, help: Help) {
        let (line, column) = self.position(at);
        self.found.borrow_mut().push(ScriptProblem {
            line,
            column,
            message: message.into(),
            help: help.0,
        });
    }

    /// Whether nothing is wrong so far.
    pub(super) fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// The line of a place, from 1.
    pub(super) fn line(&self, at: &Range<usize>) -> usize {
        self.position(at).0
    }

    /// `value` when nothing is wrong.
    pub(super) fn finish<T>(self, value: T) -> Result<T, ScriptErrors> {
        let mut problems = self.found.into_inner();
        if problems.is_empty() {
            return Ok(value);
        }
        problems.sort_by_key(|problem| (problem.line, problem.column));
        Err(ScriptErrors { problems })
    }

    fn position(&self, at: &Range<usize>) -> (usize, usize) {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count();
        (before.matches('\n').count() + 1, column + 1)
    }
}

/// What to write instead, where there is something to say.
#[derive(Debug)]
pub(super) struct Help(Option<String>);

impl Help {
    pub(super) const NONE: Self = Self(None);
}

impl From<&str> for Help {
    fn from(help: &str) -> Self {
        Self(Some(help.to_owned()))
    }
}

impl From<String> for Help {
    fn from(help: String) -> Self {
        Self(Some(help))
    }
}

impl From<Option<String>> for Help {
    fn from(help: Option<String>) -> Self {
        Self(help)
    }
}

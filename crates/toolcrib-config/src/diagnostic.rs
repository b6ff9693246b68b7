//! Problems as they are reported.

use std::{error::Error, fmt, sync::Arc};

use serde::Serialize;

use crate::spot::Spot;

/// Whether what was read can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can; something in it is probably not as meant.
    Warning,
}

/// One problem, with its place. Serialises to `{file, line, column, message, help}`; errors and
/// warnings are told apart by the list they stand in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The file, as whoever read it calls it; in a project relative to its folder, with `/`
    /// between names.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead, where it can be said.
    pub help: Option<String>,
    /// Whether what was read can be used all the same.
    #[serde(skip)]
    pub severity: Severity,
}

impl Diagnostic {
    /// A problem that makes what was read unusable.
    pub fn error(at: &Spot, message: impl Into<String>) -> Self {
        Self {
            file: Arc::clone(&at.file),
            line: at.line,
            column: at.column,
            message: message.into(),
            help: None,
            severity: Severity::Error,
        }
    }

    /// A problem that leaves what was read usable.
    pub fn warning(at: &Spot, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(at, message) }
    }

    /// Says what to write instead, in place of what was said before.
    #[must_use]
    pub fn help(mut self, help: impl Into<Help>) -> Self {
        self.help = help.into().0;
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        write!(f, "{}:{}:{}: {severity}{}", self.file, self.line, self.column, self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "\n    help: {help}"))
    }
}

/// What to write instead, where there is something to say: a text, or an `Option` of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Help(Option<String>);

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

/// Problems in the order in which they are shown: those of the main file first, then by file and
/// place. Made by [`Problems`](crate::Problems); empty where nothing is wrong.
///
/// It is an error too, for functions that read one thing and give it or all that is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics(pub(crate) Vec<Diagnostic>);

impl Diagnostics {
    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// Those that make what was read unusable.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.of(Severity::Error)
    }

    /// Those that do not.
    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.of(Severity::Warning)
    }

    fn of(&self, severity: Severity) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter().filter(move |problem| problem.severity == severity)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same problems under another file name, for whoever knows better than the reader where
    /// the text comes from.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<Arc<str>>) -> Self {
        let file = file.into();
        for problem in &mut self.0 {
            problem.file = Arc::clone(&file);
        }
        self
    }
}

impl fmt::Display for Diagnostics {
    /// One problem after the other, each on a line of its own, its help indented below.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            fmt::Display::fmt(problem, f)?;
        }
        Ok(())
    }
}

impl Error for Diagnostics {}

//! Diagnostics: problems with file, line and column.

use std::{error::Error, fmt, sync::Arc};

use serde::Serialize;

use crate::spot::Spot;

/// Whether the input is usable despite the problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The input is unusable.
    Error,
    /// The input is usable, but probably contains a mistake.
    Warning,
}

/// A problem with its place. Serializes to `{file, line, column, message, help}`; errors and
/// warnings are in separate lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The file's name, as given by its reader; in a project relative to its folder, with `/` as
    /// separator.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The problem.
    pub message: String,
    /// The suggested fix, if known.
    pub help: Option<String>,
    /// Whether the input is usable.
    #[serde(skip)]
    pub severity: Severity,
}

impl Diagnostic {
    /// A problem that makes the input unusable.
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

    /// A problem that leaves the input usable.
    pub fn warning(at: &Spot, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(at, message) }
    }

    /// Sets the suggested fix and replaces an earlier one.
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

/// An optional suggested fix: a text, or an `Option` of one.
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

/// Diagnostics in display order: those of the main file first, then by file and place. Made by
/// [`Problems`](crate::Problems); empty if there are none.
///
/// It implements `Error`, for functions that return one value or all problems with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics(pub(crate) Vec<Diagnostic>);

impl Diagnostics {
    /// The errors and warnings, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// The errors, without the warnings.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.of(Severity::Error)
    }

    /// The warnings, without the errors.
    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.of(Severity::Warning)
    }

    fn of(&self, severity: Severity) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter().filter(move |problem| problem.severity == severity)
    }

    /// Whether no problem was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same diagnostics under another file name, for callers that know the origin of the text
    /// better than its reader.
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
    /// One diagnostic per line, with its help indented below.
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

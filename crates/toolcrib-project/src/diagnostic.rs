//! Problems of a project, each with its place and what to write instead.

use std::{cell::RefCell, fmt, sync::Arc};

use serde::Serialize;

/// Whether a project with the problem loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The project does not load.
    Error,
    /// It loads; something in it is probably not as meant.
    Warning,
}

/// One problem, with its place. Serialises to `{file, line, column, message, help}`; errors and
/// warnings are told apart by the list they stand in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The file, relative to the project's folder, with `/` between names.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead, where it can be said.
    pub help: Option<String>,
    /// Whether the project loads all the same.
    #[serde(skip)]
    pub severity: Severity,
}

impl Diagnostic {
    pub(crate) fn error(at: &Spot, message: impl Into<String>) -> Self {
        Self {
            file: Arc::clone(&at.file),
            line: at.line,
            column: at.column,
            message: message.into(),
            help: None,
            severity: Severity::Error,
        }
    }

    pub(crate) fn warning(at: &Spot, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(at, message)
        }
    }

    pub(crate) fn help(mut self, help: impl Into<Option<String>>) -> Self {
        self.help = help.into();
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        write!(
            f,
            "{}:{}:{}: {severity}{}",
            self.file, self.line, self.column, self.message
        )?;
        self.help
            .as_ref()
            .map_or(Ok(()), |help| write!(f, "\n    help: {help}"))
    }
}

/// The problems of a project: `toolcrib.toml` first, then by file and place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// Those that keep the project from loading.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0
            .iter()
            .filter(|problem| problem.severity == Severity::Error)
    }

    /// Those that do not.
    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0
            .iter()
            .filter(|problem| problem.severity == Severity::Warning)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) file: Arc<str>,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Spot {
    /// Where a file begins, for what is wrong with a file as a whole.
    pub(crate) fn start_of(file: impl Into<Arc<str>>) -> Self {
        Self {
            file: file.into(),
            line: 1,
            column: 1,
        }
    }

    /// The place after `text`, when `text` begins here.
    pub(crate) fn after(&self, text: &str) -> Self {
        let column_after = |line: &str| line.chars().count();
        let file = Arc::clone(&self.file);
        match text.rsplit_once('\n') {
            None => Self {
                file,
                line: self.line,
                column: self.column + column_after(text),
            },
            Some((before, last)) => Self {
                file,
                line: self.line + 1 + before.matches('\n').count(),
                column: 1 + column_after(last),
            },
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) at: Spot,
}

/// Where problems are put while a project is read. Shared by all readers, so that one problem
/// never hides another.
#[derive(Debug, Default)]
pub(crate) struct Problems(RefCell<Vec<Diagnostic>>);

impl Problems {
    pub(crate) fn push(&self, problem: Diagnostic) {
        self.0.borrow_mut().push(problem);
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.0
            .borrow()
            .iter()
            .any(|problem| problem.severity == Severity::Error)
    }

    pub(crate) fn into_diagnostics(self) -> Diagnostics {
        let mut problems = self.0.into_inner();
        problems.sort_by(|a, b| {
            let key = |problem: &Diagnostic| {
                (
                    *problem.file != *crate::PROJECT_FILE,
                    Arc::clone(&problem.file),
                )
            };
            (key(a), a.line, a.column).cmp(&(key(b), b.line, b.column))
        });
        problems.dedup();
        Diagnostics(problems)
    }
}

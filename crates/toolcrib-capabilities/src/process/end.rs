use std::{fmt, process::ExitStatus};

use super::signals;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcessEnd {
    /// By itself, with an exit code from 0 to 255.
    Code(i32),
    /// By a signal, of this number.
    Signal(i32),
}

impl ProcessEnd {
    /// The limit of its [`ProcessLimits`](super::ProcessLimits) that ended it, if one did: `CPU
    /// time` or `file size`.
    pub fn exceeded(self) -> Option<&'static str> {
        match self {
            Self::Signal(number) => signals::limit(number),
            Self::Code(_) => None,
        }
    }
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => match signals::name(*number) {
                Some(name) => f.write_str(name),
                None => write!(f, "signal {number}"),
            },
        }
    }
}

impl From<ExitStatus> for ProcessEnd {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(signals::number(status)),
        }
    }
}

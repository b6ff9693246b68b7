use std::{fmt, process::ExitStatus};

use super::{ExceededLimit, signals};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcessEnd {
    /// By itself, with an exit code from 0 to 255.
    Code(i32),
    /// By a signal, of this number.
    Signal(i32),
    /// By the host, which killed it and all its child processes because of this limit.
    Exceeded(ExceededLimit),
}

impl ProcessEnd {
    /// The limit of its [`ProcessLimits`](super::ProcessLimits) that ended it, if one did.
    pub fn exceeded(self) -> Option<ExceededLimit> {
        match self {
            Self::Signal(number) => signals::limit(number),
            Self::Exceeded(limit) => Some(limit),
            Self::Code(_) => None,
        }
    }

    /// Whether programs usually end so if they get no more memory: by SIGABRT, SIGBUS, SIGSEGV or
    /// SIGTRAP.
    pub fn may_lack_memory(self) -> bool {
        matches!(self, Self::Signal(number) if signals::may_lack_memory(number))
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
            Self::Exceeded(_) => f.write_str("SIGKILL"),
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

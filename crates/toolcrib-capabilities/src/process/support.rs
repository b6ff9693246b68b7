//! Whether this machine can end a program's child processes with it, and limit their number.

use super::namespaces::{self, namespaces};

/// A missing feature of this machine, and why. The text is for the operator, and says how to fix
/// it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct UnsupportedError {
    reason: String,
}

impl UnsupportedError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// Whether a program's child processes end with it on this machine, whatever they do to escape.
/// Tested once per process, by creating a PID namespace; blocks for some milliseconds then.
///
/// # Errors
/// Why not. Programs are then run only if [`ProcessSpec::allow_stray_children`] is set.
///
/// [`ProcessSpec::allow_stray_children`]: super::ProcessSpec::allow_stray_children
pub fn support() -> Result<(), UnsupportedError> {
    namespaces().map(drop)
}

/// Whether [`ProcessLimits::processes`] is enforced on this machine. Tested with [`support`], by
/// exceeding a limit where that is cheap.
///
/// # Errors
/// Why not. Programs are still run, and can start as many processes as the system permits.
///
/// [`ProcessLimits::processes`]: super::ProcessLimits::processes
pub fn process_limit() -> Result<(), UnsupportedError> {
    namespaces::process_limit()
}

//! Exit codes, as documented in `--help`.

use std::process::ExitCode;

use toolcrib_agent::{EndReason, RunOutcome};
use toolcrib_core::ModelErrorClass;

/// An exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(u8);

pub(crate) const FINE: Exit = Exit(0);
pub(crate) const FAILED: Exit = Exit(1);
pub(crate) const USAGE: Exit = Exit(2);
pub(crate) const CANCELLED: Exit = Exit(3);
pub(crate) const WAITING: Exit = Exit(4);
pub(crate) const CUT_OFF: Exit = Exit(5);
pub(crate) const EMPTY: Exit = Exit(6);

impl Exit {
    pub(crate) fn code(self) -> i32 {
        self.0.into()
    }
}

impl Exit {
    /// The exit code of a stored turn, by the word for how it ended.
    pub(crate) fn of_stopped(stopped: &str) -> Self {
        match stopped {
            "answered" | "max_iterations" => FINE,
            "cancelled" => CANCELLED,
            "cut_off" => CUT_OFF,
            _ => FAILED,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

impl From<&RunOutcome> for Exit {
    fn from(outcome: &RunOutcome) -> Self {
        let class = outcome.error.as_ref().and_then(|error| error.class);
        match outcome.end_reason {
            EndReason::Answered | EndReason::MaxIterations => FINE,
            EndReason::Cancelled => CANCELLED,
            EndReason::AwaitingApproval => WAITING,
            EndReason::CutOff => CUT_OFF,
            _ if class == Some(ModelErrorClass::EmptyAnswer) => EMPTY,
            // Failed, timed out, or an unknown outcome.
            _ => FAILED,
        }
    }
}

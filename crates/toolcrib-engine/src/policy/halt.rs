//! A call at which a rule ended the run.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// A rule with the effect [`halt`](toolcrib_core::Effect::Halt) matched a call, and the loop's
/// caller ends the run. It has a separate error type for that.
///
/// Its text is for the operator. The model reads that the call is not permitted, or the rule's
/// message for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HaltedByRule {
    /// The rule.
    pub rule: Arc<str>,
    /// The tool that was called.
    pub tool: Arc<str>,
    /// The call's id.
    pub call_id: Arc<str>,
    /// The rule's reason.
    pub reason: Option<Arc<str>>,
}

impl fmt::Display for HaltedByRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ended the run at a call of `{}`", self.rule, self.tool)?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}

impl std::error::Error for HaltedByRule {}

/// Whether a turn was halted; the first rule to do so counts.
#[derive(Debug, Default)]
pub(crate) struct HaltSignal {
    halt: OnceLock<HaltedByRule>,
    bell: Notify,
}

impl HaltSignal {
    /// The signal of a turn whose conversation may have been halted before.
    pub(crate) fn of(before: Option<HaltedByRule>) -> Self {
        let signal = Self::default();
        before.into_iter().for_each(|halt| signal.halt(halt));
        signal
    }

    pub(crate) fn halt(&self, halt: HaltedByRule) {
        // A second one changes nothing.
        let _ = self.halt.set(halt);
        self.bell.notify_waiters();
    }

    pub(crate) fn get(&self) -> Option<&HaltedByRule> {
        self.halt.get()
    }

    /// Completes once it is halted.
    pub(crate) async fn halted(&self) -> &HaltedByRule {
        loop {
            let rung = self.bell.notified();
            match self.get() {
                Some(halt) => return halt,
                None => rung.await,
            }
        }
    }
}

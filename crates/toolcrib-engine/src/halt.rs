//! A call at which a rule ended the run.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use tokio::sync::Notify;

/// A rule with the effect [`halt`](toolcrib_core::Effect::Halt) met a call: whoever runs the loop ends
/// it. An error of its own, for that.
///
/// What it says is the operator's. The model reads of the call that it is not permitted, or what the
/// rule has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Halt {
    /// The rule.
    pub rule: Arc<str>,
    /// The tool that was called.
    pub tool: Arc<str>,
    /// The call's id.
    pub call_id: Arc<str>,
    /// Why, as the rule says.
    pub reason: Option<Arc<str>>,
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ended the run at a call of `{}`", self.rule, self.tool)?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}

impl std::error::Error for Halt {}

/// Whether a turn was halted; the first rule that does so counts.
#[derive(Debug, Default)]
pub(crate) struct Halting {
    halt: OnceLock<Halt>,
    bell: Notify,
}

impl Halting {
    pub(crate) fn halt(&self, halt: Halt) {
        // A second one changes nothing.
        let _ = self.halt.set(halt);
        self.bell.notify_waiters();
    }

    pub(crate) fn get(&self) -> Option<&Halt> {
        self.halt.get()
    }

    /// Done once it is halted.
    pub(crate) async fn halted(&self) -> &Halt {
        loop {
            let rung = self.bell.notified();
            match self.get() {
                Some(halt) => return halt,
                None => rung.await,
            }
        }
    }
}

//! Ack and nack of a turn by its executor.

use std::{
    error::Error,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};

/// The signal of a turn's executor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Signal {
    /// The turn is done.
    Ack,
    /// The executor gave up, with the cause.
    Nack(Arc<dyn Error + Send + Sync>),
}

/// A second signal; the first one remains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this turn was already {first}; signal once and then return")]
pub struct AlreadySignaledError {
    /// `acked` or `nacked`.
    pub first: &'static str,
}

/// The signal of one turn, and the handlers that run on ack.
///
/// A turn's context provides it by `AsRef`, which is the only requirement of
/// [`ToolRegistry::bind_context`](crate::ToolRegistry::bind_context).
#[derive(Default)]
pub struct TurnSignals(Mutex<State>);

#[derive(Default)]
struct State {
    signal: Option<Signal>,
    on_ack: Vec<Handler>,
}

/// `None` once it has run or was unsubscribed.
type Handler = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

impl TurnSignals {
    /// No signal and no handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Marks the turn as done. The handlers of [`on_ack`](Self::on_ack) have run when this returns,
    /// in order of registration, each independent of the others' failures.
    ///
    /// # Errors
    /// [`AlreadySignaledError`]; nothing happens.
    pub fn ack(&self) -> Result<(), AlreadySignaledError> {
        for handler in self.set(Signal::Ack)? {
            run(&handler);
        }
        Ok(())
    }

    /// Marks the turn as given up. The ack handlers never run.
    ///
    /// # Errors
    /// [`AlreadySignaledError`]; nothing happens.
    pub fn nack(
        &self,
        error: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Result<(), AlreadySignaledError> {
        self.set(Signal::Nack(Arc::from(error.into()))).map(drop)
    }

    /// The signal, once set.
    pub fn signal(&self) -> Option<Signal> {
        lock(&self.0).signal.clone()
    }

    /// Runs a handler when the turn is acked, never when it is nacked; immediately if it is already
    /// acked. A panicking handler does not affect others.
    pub fn on_ack(&self, handler: impl FnOnce() + Send + 'static) -> AckSubscription {
        let handler: Handler = Arc::new(Mutex::new(Some(Box::new(handler))));
        let mut state = lock(&self.0);
        match state.signal {
            None => state.on_ack.push(Arc::clone(&handler)),
            Some(Signal::Ack) => {
                drop(state);
                run(&handler);
            }
            Some(Signal::Nack(_)) => {}
        }
        AckSubscription(handler)
    }

    fn set(&self, signal: Signal) -> Result<Vec<Handler>, AlreadySignaledError> {
        let mut state = lock(&self.0);
        match state.signal {
            Some(Signal::Ack) => return Err(AlreadySignaledError { first: "acked" }),
            Some(Signal::Nack(_)) => return Err(AlreadySignaledError { first: "nacked" }),
            None => state.signal = Some(signal),
        }
        Ok(std::mem::take(&mut state.on_ack))
    }
}

/// Runs outside the lock, so that a handler may read the signal and register more.
fn run(handler: &Handler) {
    let handler = lock(handler).take();
    if let Some(handler) = handler {
        let _ = catch_unwind(AssertUnwindSafe(handler));
    }
}

impl fmt::Debug for TurnSignals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.0);
        f.debug_struct("TurnSignals")
            .field("signal", &state.signal)
            .field("on_ack", &state.on_ack.len())
            .finish()
    }
}

/// The handle of an ack handler. Dropping it changes nothing.
#[derive(Clone)]
pub struct AckSubscription(Handler);

impl AckSubscription {
    /// Removes the handler if it has not run. Idempotent.
    pub fn unsubscribe(&self) {
        let handler = lock(&self.0).take();
        drop(handler);
    }
}

crate::internal::debug_fields!(
    AckSubscription,
    subscription,
    waits = lock(&subscription.0).is_some()
);

/// No user code runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

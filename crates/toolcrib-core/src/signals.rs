//! How the executor of a turn says that it is done.

use std::{
    error::Error,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What an executor said of its turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Signal {
    /// It is done.
    Ack,
    /// It gave up, and why.
    Nack(Arc<dyn Error + Send + Sync>),
}

/// A second signal. The first one stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this turn was {first} already; an executor signals once, so return after it has")]
pub struct AlreadySignalled {
    /// `acked` or `nacked`.
    pub first: &'static str,
}

/// The signal of one turn, and what is to happen when it is acked.
///
/// A context of a turn gives it by `AsRef`; that is all that
/// [`ToolRegistry::bind_context`](crate::ToolRegistry::bind_context) needs of one.
#[derive(Default)]
pub struct TurnSignals(Mutex<State>);

#[derive(Default)]
struct State {
    signal: Option<Signal>,
    on_ack: Vec<Handler>,
}

/// Empty once it has run, or is to run no more.
type Handler = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

impl TurnSignals {
    /// No signal, and nothing to be done.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that the turn is done. What [`on_ack`](Self::on_ack) was given has happened when this
    /// returns: in the order in which it came, each whatever became of the ones before.
    ///
    /// # Errors
    /// [`AlreadySignalled`]; nothing happens.
    pub fn ack(&self) -> Result<(), AlreadySignalled> {
        for handler in self.set(Signal::Ack)? {
            run(&handler);
        }
        Ok(())
    }

    /// Says that the turn is given up. What waits for an ack never happens.
    ///
    /// # Errors
    /// [`AlreadySignalled`]; nothing happens.
    pub fn nack(
        &self,
        error: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Result<(), AlreadySignalled> {
        self.set(Signal::Nack(Arc::from(error.into()))).map(drop)
    }

    /// What was said, once it was.
    pub fn signal(&self) -> Option<Signal> {
        lock(&self.0).signal.clone()
    }

    /// Does something when the turn is acked, and nothing when it is nacked; at once where it was acked
    /// already. One that panics hurts nobody.
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

    fn set(&self, signal: Signal) -> Result<Vec<Handler>, AlreadySignalled> {
        let mut state = lock(&self.0);
        match state.signal {
            Some(Signal::Ack) => return Err(AlreadySignalled { first: "acked" }),
            Some(Signal::Nack(_)) => return Err(AlreadySignalled { first: "nacked" }),
            None => state.signal = Some(signal),
        }
        Ok(std::mem::take(&mut state.on_ack))
    }
}

/// Outside of the lock, so that a handler may look at the signal, and bind more.
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

/// The handle of something that waits for an ack. Dropping it changes nothing.
#[derive(Clone)]
pub struct AckSubscription(Handler);

impl AckSubscription {
    /// Takes it back, if it has not happened. Doing it twice is harmless.
    pub fn unsubscribe(&self) {
        let handler = lock(&self.0).take();
        drop(handler);
    }
}

impl fmt::Debug for AckSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AckSubscription").field("waits", &lock(&self.0).is_some()).finish()
    }
}

/// No code of others runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

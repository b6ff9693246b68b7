//! Opens connections to a server.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;
use toolcrib_core::ClientAbilities;

use super::{
    ending::Ending,
    handshake::{Greeting, HandshakeError, shake_hands},
    intake::Intake,
    open::Connection,
    peer::Peer,
    transport::{CallerContext, Dial, Wiring},
    types::{ConnectError, Signals},
};

/// Opens connections to one server. Each is independent of earlier ones.
///
/// It remembers the server's kind of handshake: one that ignores unknown requests costs its 10 s
/// once, not at every start. Some servers end, or send garbage, when their first request is unknown
/// to them, and a legacy server may be replaced by a newer one. So if the handshake fails, the other
/// kind is tried, once, on a separate connection; a program is started twice then.
pub(crate) struct Connector {
    dial: Box<dyn Dial>,
    is_legacy: AtomicBool,
    /// Whether it was found to refuse a session.
    is_modern: AtomicBool,
    /// Whether a call failed because the server asks its client inside of calls, without a session.
    needs_session: AtomicBool,
    /// The only kind of handshake to try.
    only: OnceLock<Greeting>,
}

/// A connection that is being opened, for the error of a wait that ran out.
#[derive(Default)]
pub(crate) struct Opening(Mutex<Option<Arc<Intake>>>);

impl Opening {
    /// The [stray messages](Connection::stray) so far.
    pub(crate) fn stray(&self) -> String {
        self.0.lock().as_ref().map(|intake| intake.stray()).unwrap_or_default()
    }
}

impl Connector {
    pub(super) fn new(dial: impl Dial) -> Arc<Self> {
        Arc::new(Self {
            dial: Box::new(dial),
            is_legacy: AtomicBool::new(false),
            is_modern: AtomicBool::new(false),
            needs_session: AtomicBool::new(false),
            only: OnceLock::new(),
        })
    }

    /// Tries this kind of handshake only.
    pub(crate) fn only(&self, greeting: Greeting) {
        // Set once, by the builder.
        let _ = self.only.set(greeting);
    }

    /// A call failed because the server asks inside of calls, without a session.
    pub(crate) fn needs_session(&self) {
        self.needs_session.store(true, Ordering::Relaxed);
    }

    /// Whether clients with these abilities are served better in a session: many servers of both eras ask
    /// inside of calls, which is possible in a session only. A client without a session is served by the
    /// newer version, until a call shows that its server does so.
    pub(crate) fn prefers_session(&self, can: ClientAbilities) -> bool {
        can.can_something()
            && (can.in_session || self.needs_session.load(Ordering::Relaxed))
            && !self.is_modern.load(Ordering::Relaxed)
            && self.only.get().is_none()
    }

    /// The server for the operator: its command line, with the expanded arguments, or its URL
    /// without the query.
    pub(crate) fn target(&self) -> &str {
        self.dial.target()
    }

    /// Starts or dials the server for a caller, and negotiates a version, for clients with these
    /// abilities. Dropping the future undoes it, without waiting: a process is killed.
    pub(crate) async fn connect(
        &self,
        signals: Arc<dyn Signals>,
        can: ClientAbilities,
        caller: CallerContext<'_>,
        opening: &Opening,
    ) -> Result<Arc<Connection>, ConnectError> {
        let by_choice = self.prefers_session(can);
        let (greeting, other) = match self.is_legacy.load(Ordering::Relaxed) || by_choice {
            true => (Greeting::Legacy, Greeting::Either),
            false => (Greeting::Either, Greeting::Legacy),
        };
        let greeting = self.only.get().copied().unwrap_or(greeting);
        let connection = match self.attempt(greeting, &signals, can, caller, opening).await {
            Err(failed) if self.only.get().is_some() => Err(failed),
            Err(HandshakeError { may_be_greeting: true, .. }) => {
                self.attempt(other, &signals, can, caller, opening).await
            }
            first => first,
        };
        let connection = connection.map_err(|failed| failed.error)?;
        match (by_choice, connection.is_legacy()) {
            // It may have both versions.
            (true, true) => {}
            (true, false) => self.is_modern.store(true, Ordering::Relaxed),
            (false, is_legacy) => self.is_legacy.store(is_legacy, Ordering::Relaxed),
        }
        Ok(Arc::new(connection))
    }

    async fn attempt(
        &self,
        greeting: Greeting,
        signals: &Arc<dyn Signals>,
        can: ClientAbilities,
        caller: CallerContext<'_>,
        opening: &Opening,
    ) -> Result<Connection, HandshakeError> {
        let intake = Arc::new(Intake::new(Arc::clone(signals), self.dial.target()));
        *opening.0.lock() = Some(Arc::clone(&intake));
        let ending = Arc::<Ending>::default();
        let closing = Ending::on_drop(&ending);
        let shown = |mut error: ConnectError| {
            error.problem = intake.shown(&error.problem);
            error
        };
        let wiring = Wiring { intake: Arc::clone(&intake), ending };
        let dialed = self.dial.dial(wiring.clone(), caller).await;
        let dialed = dialed.map_err(|error| HandshakeError::for_good(shown(error)))?;
        let serving = AbortOnDropHandle::new(tokio::spawn(dialed.serving));
        let peer = Peer::new(dialed.transport, wiring, can);
        match shake_hands(&peer, greeting).await {
            Ok(greeted) => Ok(Connection::open(peer, greeted, serving, closing).await),
            Err(mut failed) => {
                failed.error = shown(failed.error);
                // Another attempt must not meet the rest of this one.
                drop(closing);
                let _ = serving.await;
                Err(failed)
            }
        }
    }
}

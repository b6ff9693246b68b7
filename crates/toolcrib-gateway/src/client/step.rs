//! The iteration of a request: of its session's turn, or of a separate one.

use std::sync::Arc;

use rmcp::ErrorData;
use tokio::time::sleep;
use toolcrib_core::{Events, Identity, ToolResult};
use toolcrib_engine::{DEFAULT_PERSONALITY, Iteration, Reveal, Turn, TurnError};

use super::{
    callers::{Noted, Restrictions},
    context::ServeContext,
    request::{Era, RequestContext},
    session::{Purpose, SessionTurn},
    shared_session::TRUSTED_FOR,
};
use crate::access::Caller;

/// The client's error for a result whose restrictions are not stored.
const WITHHELD: &str = "the call was made, and its result is withheld: its restrictions cannot be stored \
    now; find out what the call did before you repeat it";

/// The conversation of requests in the stateless era, for what permits or shows: artifacts of one
/// caller's results can be read by later requests of the same caller, and files that it has read can
/// be written. The personality is part of it, since another one may have less access. What restricts
/// is that of all its personalities; see [`callers`](super::callers).
///
/// `None` for a caller over HTTP without a principal: anybody with the token may be the next one.
fn stateless(caller: &Caller) -> Option<String> {
    if caller.peer.is_some() && caller.access.principal.is_none() {
        return None;
    }
    Some(match caller.access.personality.as_deref() {
        None | Some(DEFAULT_PERSONALITY) => "stateless".to_owned(),
        Some(personality) => format!("stateless {personality}"),
    })
}

/// An iteration, and the values that must live as long.
pub(crate) struct Step {
    pub(crate) iteration: Iteration,
    /// Its events.
    pub(crate) events: Events,
    pub(crate) turn_id: Arc<str>,
    pub(crate) identity: Arc<Identity>,
    /// Dropping it would cancel the iteration's calls.
    turn: OwnTurn,
}

/// The turn of a step.
enum OwnTurn {
    Session(Arc<SessionTurn>),
    Request { _turn: Box<Turn>, restrictions: Restrictions },
}

impl RequestContext<'_> {
    pub(crate) async fn step(&self, purpose: Purpose<'_>) -> Result<Step, TurnError> {
        self.step_of(&self.serving, purpose).await
    }

    /// Begins an iteration: of the session's turn, or of a separate one. In the stateless era no skill
    /// can be activated, and no found tool stays listed.
    pub(crate) async fn step_of(
        &self,
        serving: &ServeContext,
        purpose: Purpose<'_>,
    ) -> Result<Step, TurnError> {
        let access = &self.caller.access;
        match &self.era {
            Era::Session(session) => {
                let (iteration, bound) = session.iteration(purpose).await?;
                Ok(Step {
                    iteration,
                    events: session.events.clone(),
                    turn_id: Arc::clone(&bound.turn_id),
                    identity: Arc::clone(&session.identity),
                    turn: OwnTurn::Session(bound),
                })
            }
            Era::Stateless(_) => {
                let events = Events::new();
                let restrictions = serving.gateway.restrictions(access).await?;
                let options = serving.gateway.turn_options(access, &serving.cancellation);
                let options = match stateless(&self.caller) {
                    Some(conversation) => options.conversation(conversation),
                    None => options.keeps_nothing(),
                };
                let options = options
                    .tainted(restrictions.tainted)
                    .halted(restrictions.halted.clone())
                    .iterations(restrictions.iterations)
                    .without_read_skill()
                    .reveal(Reveal::CallTool)
                    .client(Arc::clone(self.port))
                    .events(events.clone());
                let mut turn = serving.gateway.config.engine.turn(options)?;
                let listed = turn.begin_for(purpose.tool()).await?.listed().await;
                let iteration = turn.offer(listed).await?;
                let turn_id = Arc::clone(turn.turn_id());
                let identity = Arc::clone(turn.identity());
                let turn = OwnTurn::Request { _turn: Box::new(turn), restrictions };
                Ok(Step { iteration, events, turn_id, identity, turn })
            }
        }
    }

    /// Remembers what the result of a step's call restricts, before the client receives it.
    ///
    /// # Errors
    /// If another replica could not know it: the client must not receive the result.
    pub(crate) async fn remember(&self, step: &Step, result: &ToolResult) -> Result<(), ErrorData> {
        let access = &self.caller.access;
        let gateway = &self.serving.gateway;
        let halted = step.iteration.halted();
        let (note_taint, note_halt) = match (&step.turn, self.era.session()) {
            (OwnTurn::Request { restrictions, .. }, _) => (
                result.untrusted && restrictions.is_to_be_noted(),
                halted.is_some() && restrictions.halted.is_none(),
            ),
            (OwnTurn::Session(_), Some(session)) => session.restrict(result.untrusted, halted),
            (OwnTurn::Session(_), None) => (false, false),
        };
        let mut is_noted = true;
        if note_taint {
            is_noted &= gateway.note(access, Noted::Tainted).await;
        }
        if let Some(halted) = halted.filter(|_| note_halt) {
            is_noted &= gateway.note(access, Noted::Halted(halted.clone())).await;
        }
        // Only the store tells other replicas; a process alone remembers it.
        let must_share =
            gateway.config.replicas.is_some() && gateway.config.engine.reads_restrictions();
        // An earlier result may have been withheld because it could not be noted.
        let is_noted = !must_share || (is_noted && gateway.save(access).await);
        let is_shared = match (&step.turn, self.era.session()) {
            (OwnTurn::Session(bound), Some(session)) => match session.share(bound).await {
                // A replica that has just read the session offers the new menu only then.
                Ok(true) if !gateway.reads_sessions() => {
                    sleep(TRUSTED_FOR).await;
                    true
                }
                shared => shared.is_ok(),
            },
            _ => true,
        };
        match is_noted && (is_shared || !must_share) {
            true => Ok(()),
            false => Err(ErrorData::internal_error(WITHHELD, None)),
        }
    }
}

/// The client's error for an iteration that did not begin. The cause is for the operator, in the
/// access log.
pub(crate) fn refusal(error: &TurnError) -> ErrorData {
    let message = match error {
        TurnError::Cancelled => "the request was cancelled",
        TurnError::Collision(_) => {
            "two tools have the same name, so no tools can be offered; the server's log has the \
             details"
        }
        _ => "the tools cannot be listed now; try again, and see the server's log for the reason",
    };
    ErrorData::internal_error(message, None)
}

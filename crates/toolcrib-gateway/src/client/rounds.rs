//! Requests of the stateless era that need input of their client: the call waits here, and the
//! client comes back with the input and a state, which only this process understands. It is valid
//! once, for ten minutes, and for the same request of the same caller. With several replicas it also says
//! which of them has the call, and each passes the request on to that one.

use std::{collections::HashMap, sync::Arc};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::{
    ErrorData,
    model::{CustomResult, ServerResult},
};
use serde_json::{Map, Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};
use tokio_util::sync::DropGuard;
use toolcrib_core::{CancellationToken, Digest, SessionOwner};
use uuid::Uuid;

use super::{context::ServeContext, sender::OpenRequest};
use crate::{
    access::{
        Access,
        replicas::{LOCATED_FOR, OtherReplica, Replicas},
    },
    wire::message::{Outcome, Request},
};

/// The parameters of a further round.
const STATE: &str = "requestState";
const RESPONSES: &str = "inputResponses";

/// The purpose of the seals that are states.
const OF_STATE: &str = "round";

/// The limit of calls that wait for their clients. Beyond it, the principal with most of them loses
/// its oldest one to another principal, or is refused.
const MOST_WAITING: usize = 256;

/// The methods that may need input.
const WITH_ROUNDS: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// The calls that wait for their clients, by their states.
#[derive(Default)]
pub(crate) struct WaitingCalls(Mutex<HashMap<Arc<str>, Call>>);

/// The part of a request that all its rounds share, and what this one adds.
pub(crate) struct Round {
    /// The state of the earlier round, and what it must be valid for.
    continues: Option<(Value, Digest)>,
    responses: Map<String, Value>,
    owner: SessionOwner,
    /// The receiver of the call's messages during this round.
    request: OpenRequest,
}

impl Round {
    /// Takes the parts of a further round from a request; `None` if its method has no rounds.
    ///
    /// # Errors
    /// If the parts are malformed.
    pub(crate) fn take(
        request: &mut Request,
        access: &Access,
        open: &OpenRequest,
    ) -> Result<Option<Self>, ErrorData> {
        if !WITH_ROUNDS.contains(&request.method.as_str()) {
            return Ok(None);
        }
        let state = request.params.remove(STATE);
        let responses = match request.params.remove(RESPONSES) {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(responses)) => responses,
            Some(_) => {
                let message = format!("`{RESPONSES}` must be an object");
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        let bound = || bound(&request.method, &request.params, access);
        let continues = state.map(|state| (state, bound()));
        let owner =
            SessionOwner { tenant: access.tenant.clone(), principal: access.principal.clone() };
        Ok(Some(Self { continues, responses, owner, request: open.clone() }))
    }

    /// Whether it continues an earlier round.
    pub(crate) fn continues(&self) -> bool {
        self.continues.is_some()
    }
}

/// Whether a request without a session continues an earlier one.
pub(crate) fn continues(request: &Request) -> bool {
    WITH_ROUNDS.contains(&request.method.as_str()) && request.params.contains_key(STATE)
}

/// The replica that has the call of a request, if that is another one.
pub(crate) fn elsewhere(request: &Request, replicas: &Replicas) -> Option<OtherReplica> {
    let state = request.params.get(STATE).filter(|_| continues(request))?.as_str()?;
    replicas.elsewhere(OF_STATE, state)
}

/// The caller and the request that a state is valid for.
pub(crate) fn bound(method: &str, params: &Map<String, Value>, access: &Access) -> Digest {
    let Access { tenant, principal, personality, .. } = access;
    let caller = [tenant.as_deref(), principal.as_deref(), personality.as_deref()];
    Digest::of_json(&json!([caller, method, params]))
}

/// A call that needs input.
pub(crate) struct Call {
    bound: Digest,
    owner: SessionOwner,
    /// When it began to wait.
    since: Instant,
    outcome: oneshot::Receiver<Outcome>,
    asks: mpsc::Receiver<InputRequests>,
    open: Vec<PendingInput>,
    /// The receiver of its messages.
    request: OpenRequest,
    /// Ends the call; without its client it cannot go on.
    unwanted: CancellationToken,
    _ends: DropGuard,
    /// Fires when the client came back, or its time is over.
    taken: CancellationToken,
}

/// Requests of a server that wait for the client's next round.
pub(crate) struct InputRequests {
    pub(crate) requests: Map<String, Value>,
    pub(crate) reply: oneshot::Sender<Map<String, Value>>,
}

/// Requests of a server, and the responses so far.
struct PendingInput {
    /// The server's keys by those that the client uses.
    missing: HashMap<String, (String, Value)>,
    responses: Map<String, Value>,
    reply: oneshot::Sender<Map<String, Value>>,
}

/// Runs a request until its outcome, or until it needs input.
pub(crate) async fn first(
    serving: &ServeContext,
    round: Round,
    bound: impl FnOnce() -> Digest,
    mut call: BoxFuture<'static, Outcome>,
    mut asks: mpsc::Receiver<InputRequests>,
    unwanted: &CancellationToken,
    gone: impl Future<Output = ()>,
) -> Outcome {
    if let Some((state, bound)) = round.continues {
        let waiting = &serving.gateway.waiting;
        let mut found = waiting.take(&state, bound, serving.gateway.config.replicas.as_ref())?;
        found.request.continue_with(&round.request);
        found.answer(round.responses);
        return found.next(serving, gone).await;
    }
    tokio::pin!(gone);
    let ask = tokio::select! {
        biased;
        outcome = &mut call => return outcome,
        Some(ask) = asks.recv() => ask,
        () = &mut gone => {
            unwanted.cancel();
            return call.await;
        }
    };
    let (done, outcome) = oneshot::channel();
    serving.running.spawn(async move {
        // The client may not come back.
        let _ = done.send(call.await);
    });
    let mut waits = Call {
        bound: bound(),
        owner: round.owner,
        since: Instant::now(),
        outcome,
        asks,
        open: Vec::new(),
        request: round.request,
        unwanted: unwanted.clone(),
        _ends: unwanted.clone().drop_guard(),
        taken: CancellationToken::new(),
    };
    waits.opened(ask);
    waits.next(serving, gone).await
}

impl Call {
    fn opened(&mut self, ask: InputRequests) {
        let taken = |key: &String| self.open.iter().any(|open| open.missing.contains_key(key));
        let mut missing = HashMap::new();
        for (own, request) in ask.requests {
            let mut key = own.clone();
            let mut number = 1;
            while taken(&key) || missing.contains_key(&key) {
                number += 1;
                key = format!("{own} {number}");
            }
            missing.insert(key, (own, request));
        }
        self.open.push(PendingInput { missing, responses: Map::new(), reply: ask.reply });
    }

    /// Passes responses on to the servers that asked.
    fn answer(&mut self, responses: Map<String, Value>) {
        for (key, response) in responses {
            // Others are ignored, as the protocol requires.
            if !response.is_object() {
                continue;
            }
            for open in &mut self.open {
                if let Some((own, _)) = open.missing.remove(&key) {
                    open.responses.insert(own, response);
                    break;
                }
            }
        }
        for open in self.open.extract_if(.., |open| open.missing.is_empty()) {
            // The call may have ended.
            let _ = open.reply.send(open.responses);
        }
    }

    /// Waits for the outcome, or for the next input that is needed.
    async fn next(mut self, serving: &ServeContext, gone: impl Future<Output = ()>) -> Outcome {
        let missing = || ErrorData::internal_error("the request ended without an answer", None);
        if self.open.is_empty() {
            tokio::select! {
                biased;
                outcome = &mut self.outcome => return outcome.map_err(|_| missing())?,
                Some(ask) = self.asks.recv() => self.opened(ask),
                () = gone => {
                    self.unwanted.cancel();
                    return self.outcome.await.map_err(|_| missing())?;
                }
            }
        }
        while let Ok(ask) = self.asks.try_recv() {
            self.opened(ask);
        }
        let asked = self.open.iter().flat_map(|open| &open.missing);
        let requests: Map<_, _> =
            asked.map(|(key, (_, request))| (key.clone(), request.clone())).collect();
        self.request.close();
        let state = serving.gateway.waiting.keep(serving, self)?;
        let result = json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": &*state,
        });
        Ok(ServerResult::CustomResult(CustomResult::new(result)))
    }
}

impl WaitingCalls {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    fn keep(&self, serving: &ServeContext, mut call: Call) -> Result<Arc<str>, ErrorData> {
        // Unguessable, and meaningless elsewhere: 244 random bits.
        let state: Arc<str> =
            format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()).into();
        let taken = CancellationToken::new();
        call.taken = taken.clone();
        call.since = Instant::now();
        let mut calls = self.0.lock();
        let evicted = match calls.len() >= MOST_WAITING {
            true => Some(take_for(&mut calls, &call.owner).ok_or_else(|| {
                let message = "too many requests wait for input; try again later";
                ErrorData::internal_error(message, None)
            })?),
            false => None,
        };
        calls.insert(Arc::clone(&state), call);
        drop(calls);
        drop(evicted);
        let located = serving.gateway.config.replicas.as_ref();
        let located = located.and_then(|replicas| replicas.located(OF_STATE, &*state));
        let (serving, key) = (serving.clone(), Arc::clone(&state));
        let gateway = Arc::clone(&serving.gateway);
        serving.running.clone().spawn(async move {
            tokio::select! {
                () = taken.cancelled() => return,
                () = serving.cancellation.cancelled() => {}
                () = sleep(LOCATED_FOR) => {}
            }
            let expired = gateway.waiting.0.lock().remove(&key);
            drop(expired);
        });
        Ok(located.unwrap_or(state))
    }

    /// The call of a state, which is not valid any more.
    fn take(
        &self,
        state: &Value,
        bound: Digest,
        replicas: Option<&Replicas>,
    ) -> Result<Call, ErrorData> {
        let invalid = || {
            let message = "the `requestState` is not valid: it was used, has expired, or belongs to \
                another request; send the request again without it";
            ErrorData::invalid_params(message, None)
        };
        let state = state.as_str().ok_or_else(invalid)?;
        let located = replicas.and_then(|replicas| replicas.here::<Arc<str>>(OF_STATE, state));
        let state = located.as_deref().unwrap_or(state);
        let mut calls = self.0.lock();
        let call = calls.get(state).filter(|call| call.bound == bound).ok_or_else(invalid)?;
        call.taken.cancel();
        calls.remove(state).ok_or_else(invalid)
    }
}

/// Takes the oldest call of the principal that has most of them, to make room for another principal
/// with fewer.
fn take_for(calls: &mut HashMap<Arc<str>, Call>, owner: &SessionOwner) -> Option<Call> {
    let mut counts = HashMap::<&SessionOwner, usize>::new();
    for call in calls.values() {
        *counts.entry(&call.owner).or_default() += 1;
    }
    let own = counts.get(owner).copied().unwrap_or_default();
    let (most, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    if count <= own + 1 {
        return None;
    }
    let of_most = calls.iter().filter(|(_, call)| call.owner == *most);
    let (oldest, _) = of_most.min_by_key(|(_, call)| call.since)?;
    let oldest = Arc::clone(oldest);
    let call = calls.remove(&oldest)?;
    call.taken.cancel();
    Some(call)
}

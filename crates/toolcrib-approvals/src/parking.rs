//! The approver that uses decisions and grants, asks at the terminal, and parks the rest.

use std::{future::ready, sync::Arc};

use tokio::task::spawn_blocking;
use toolcrib_core::{
    __internal::{millis, now_ms},
    Approval, ApprovalMark, ApprovalRequest, ApprovalState, ApprovalStoreError, Approver,
    BoxFuture, Clarification, ClarificationOutcome, ParkedCall, SessionOwner, SessionStoreError,
    Settlement, StoredApproval, StoredArguments,
};

use crate::{
    approvals::Approvals,
    binding::{CallBinding, digest_of},
    error::ApprovalError,
    grant::GrantScope,
};

/// The number of calls that may wait in a store at a time.
const MOST_OPEN: usize = 256;

/// The size of arguments that can be parked, as JSON.
const MOST_BYTES: usize = 256 * 1024;

/// An [`Approver`] that decides by the user's settlements and grants, otherwise asks a
/// [person](Self::asking), and without one parks the call. Made by [`Approvals::approver`].
#[derive(Clone)]
pub struct ParkingApprover {
    approvals: Approvals,
    session: Option<Arc<str>>,
    person: Option<Arc<dyn Approver>>,
}

/// The store's answer about a call.
enum StoredDecision {
    Granted,
    Approved,
    Denied(Option<Arc<str>>),
    /// Nothing; with the open row of the call, if it was parked before.
    Nothing(Option<Arc<str>>),
    /// The request has expired.
    Expired,
}

impl ParkingApprover {
    pub(crate) fn new(approvals: Approvals, session: Option<Arc<str>>) -> Self {
        Self { approvals, session, person: None }
    }

    /// Asks the person at the other end of this approver, instead of parking a call, such as of a
    /// [`TerminalApprover`](crate::TerminalApprover). Its decision is final: leave it out where no
    /// person can answer.
    #[must_use]
    pub fn asking(mut self, person: Arc<dyn Approver>) -> Self {
        self.person = Some(person);
        self
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Approval {
        let tool = request.tool.name();
        let arguments = match request.arguments {
            Ok(arguments) => arguments,
            Err(error) => {
                return Approval::Failed {
                    message: format!(
                        "the arguments of `{tool}` contain a secret, so the call cannot wait for \
                         approval; call it without"
                    ),
                    cause: error.to_string(),
                };
            }
        };
        let call = self.call(request, arguments);
        let failed = |error: ApprovalError| Approval::Failed {
            message: format!("calling `{tool}` needs approval, and the approval failed"),
            cause: error.to_string(),
        };
        let known = match self.on_store(&call, Approvals::known).await {
            Ok(known) => known,
            Err(error) => return failed(error),
        };
        let (open, has_expired) = match known {
            StoredDecision::Granted | StoredDecision::Approved => return Approval::Approved,
            StoredDecision::Denied(reason) => {
                return Approval::Refused(denial(tool, reason.as_deref()));
            }
            StoredDecision::Nothing(open) => (open, false),
            StoredDecision::Expired => (None, true),
        };
        if let Some(person) = &self.person {
            let decision = person.approve(request.clone()).await;
            return match self.withdraw(&call, open).await {
                Ok(()) => decision,
                Err(error) => failed(error),
            };
        }
        if call.arguments.as_ref().is_none_or(|stored| stored.value.to_string().len() > MOST_BYTES)
        {
            return Approval::Failed {
                message: format!(
                    "the arguments of `{tool}` are too large to wait for approval; make them smaller"
                ),
                cause: format!("arguments of more than {MOST_BYTES} bytes are not parked"),
            };
        }
        let parked = self.on_store(&call, |approvals, call| {
            approvals.prune()?;
            Ok(approvals.store.park(call, MOST_OPEN)?)
        });
        match parked.await {
            Ok(parked) if has_expired => Approval::Expired(self.told(tool, &parked)),
            Ok(parked) => Approval::Parked(self.told(tool, &parked)),
            Err(error) => failed(error),
        }
    }

    /// Closes the open request of a call that a person has decided on.
    async fn withdraw(
        &self,
        call: &ParkedCall,
        open: Option<Arc<str>>,
    ) -> Result<(), ApprovalError> {
        let Some(open) = open else { return Ok(()) };
        let close =
            move |approvals: &Approvals, _: &_| Ok(approvals.store.close(&open, "withdrawn")?);
        self.on_store(call, close).await.map(drop)
    }

    fn call(&self, request: &ApprovalRequest<'_>, arguments: &StoredArguments) -> ParkedCall {
        let owner = SessionOwner::from(request.identity);
        let (tool, session) = (request.tool, self.session.as_ref());
        // A repetition of a call has another id: within a session, a decision is about this one.
        let call_id = session.map(|_| request.call_id);
        let definition = tool.approved_digest();
        let bound = CallBinding {
            owner: &owner,
            session,
            call_id,
            tool: tool.name(),
            origin: tool.origin(),
            definition,
            arguments,
        };
        ParkedCall {
            binding: bound.digest(),
            session: session.cloned(),
            call_id: call_id.cloned(),
            tool: tool.name().as_str().into(),
            origin: Arc::clone(tool.shared_origin()),
            definition,
            arguments: Some(arguments.clone()),
            rule: Arc::clone(&request.rule.label),
            reason: request.rule.reason.clone(),
            expires_ms: now_ms().saturating_add(millis(self.approvals.expire_after)),
            owner,
        }
    }

    /// The text for the model, or for the client of a gateway.
    fn told(&self, tool: &str, parked: &StoredApproval) -> String {
        let id = &parked.id;
        match self.session {
            Some(_) => format!("the call of `{tool}` was not made: it waits for approval `{id}`"),
            None => format!(
                "the call of `{tool}` was not made: it waits for approval. The operator decides \
                 with `toolcrib approve {id}` or `toolcrib deny {id}`. After that, make the same \
                 call once more; do not repeat it before"
            ),
        }
    }

    /// Runs a function on the store, off the async workers.
    async fn on_store<T: Send + 'static>(
        &self,
        call: &ParkedCall,
        work: impl FnOnce(&Approvals, &ParkedCall) -> Result<T, ApprovalError> + Send + 'static,
    ) -> Result<T, ApprovalError> {
        let (approvals, call) = (self.approvals.clone(), call.clone());
        spawn_blocking(move || work(&approvals, &call)).await.unwrap_or_else(|error| {
            let store = "the store of approvals".to_owned();
            let source = error.into();
            let error = SessionStoreError::Io { store, doing: "used", source };
            Err(ApprovalStoreError::from(error).into())
        })
    }
}

/// The text for the model.
fn denial(tool: &str, reason: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("the operator denied this call of `{tool}`{reason}; do not repeat it")
}

impl Approvals {
    /// The user's decision on a call. A decision on it is used up.
    fn known(&self, call: &ParkedCall) -> Result<StoredDecision, ApprovalError> {
        let key = self.keys.read()?;
        let (mut open, mut has_expired) = (None, false);
        for stored in self.store.approvals(false)? {
            if stored.call.binding != call.binding {
                continue;
            }
            match &stored.state {
                // A row that was changed would never be approved, and the call would wait in vain.
                ApprovalState::Open if digest_of(&stored.call) != Some(call.binding) => {
                    self.store.close(&stored.id, "changed")?;
                }
                ApprovalState::Open if stored.call.expires_ms > now_ms() => {
                    open.get_or_insert(Arc::clone(&stored.id));
                }
                ApprovalState::Settled(settled)
                    if self.is_sealed(key.as_ref(), &stored, settled) =>
                {
                    let how = match (settled.until_ms > now_ms(), settled.is_approved) {
                        (true, true) => "used",
                        (true, false) => "denied",
                        (false, _) => "expired",
                    };
                    match how {
                        "expired" => {
                            self.store.close(&stored.id, how)?;
                            has_expired = true;
                        }
                        // Another caller took it, or it was used before.
                        _ if !self.take(&stored, settled, how)? => {}
                        "used" => return Ok(StoredDecision::Approved),
                        _ => return Ok(StoredDecision::Denied(settled.reason.clone())),
                    }
                }
                ApprovalState::Open => has_expired = true,
                _ => {}
            }
        }
        let is_granted = key.is_some() && self.is_granted(call)?;
        Ok(match (is_granted, has_expired && open.is_none()) {
            (true, _) => StoredDecision::Granted,
            (false, true) => StoredDecision::Expired,
            (false, false) => StoredDecision::Nothing(open),
        })
    }

    /// Uses up a decision: of all callers on the store, in whatever process, one gets `true`. The
    /// store decides, since processes with one key may have separate configuration folders. The mark
    /// in the folder comes second: it refuses a decision that an older copy of the store brings back.
    fn take(
        &self,
        stored: &StoredApproval,
        settled: &Settlement,
        how: &str,
    ) -> Result<bool, ApprovalError> {
        Ok(self.store.close(&stored.id, how)?
            && self.keys.mark(ApprovalMark::Used, &stored.id, settled.until_ms)?)
    }

    fn is_granted(&self, call: &ParkedCall) -> Result<bool, ApprovalError> {
        let Some(arguments) = call.arguments.as_ref().filter(|one| one.secrets.is_empty()) else {
            return Ok(false);
        };
        Ok(self.grants()?.iter().any(|grant| {
            grant.owner == call.owner
                && grant.tool == call.tool
                && grant.origin == call.origin
                && serde_json::from_str::<GrantScope>(&grant.scope)
                    .is_ok_and(|scope| scope.permits(&arguments.value))
        }))
    }

    /// The denial of a session's call that was parked, with the tool. It is used up.
    fn denial(&self, session: &str, call_id: &str) -> Result<Option<String>, ApprovalError> {
        let key = self.keys.read()?;
        for stored in self.store.approvals(false)? {
            let ApprovalState::Settled(settled) = &stored.state else { continue };
            let is_denial = stored.call.session.as_deref() == Some(session)
                && stored.call.call_id.as_deref() == Some(call_id)
                && !settled.is_approved
                && settled.until_ms > now_ms()
                && self.is_sealed(key.as_ref(), &stored, settled);
            if is_denial && self.take(&stored, settled, "denied")? {
                return Ok(Some(denial(&stored.call.tool, settled.reason.as_deref())));
            }
        }
        Ok(None)
    }

    /// The arguments of a session's call that was parked.
    fn parked(
        &self,
        session: &str,
        call_id: &str,
    ) -> Result<Option<StoredArguments>, ApprovalError> {
        let all = self.store.approvals(false)?;
        let found = all.into_iter().rfind(|stored| {
            stored.call.session.as_deref() == Some(session)
                && stored.call.call_id.as_deref() == Some(call_id)
        });
        Ok(found.and_then(|stored| stored.call.arguments))
    }
}

toolcrib_core::__internal::debug_fields!(ParkingApprover { session, .. });

impl Approver for ParkingApprover {
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move { self.decide(&request).await })
    }

    fn parked<'a>(&'a self, call_id: &'a Arc<str>) -> BoxFuture<'a, Option<StoredArguments>> {
        Box::pin(async move {
            let session = self.session.clone()?;
            let (approvals, call_id) = (self.approvals.clone(), Arc::clone(call_id));
            let found = spawn_blocking(move || approvals.parked(&session, &call_id)).await;
            // Without them the call has the arguments of its message, and needs another approval if
            // they are others.
            found.ok()?.ok()?
        })
    }

    fn denied<'a>(&'a self, call_id: &'a Arc<str>) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let session = self.session.clone()?;
            let (approvals, call_id) = (self.approvals.clone(), Arc::clone(call_id));
            let found = spawn_blocking(move || approvals.denial(&session, &call_id)).await;
            found.ok()?.ok()?
        })
    }

    /// A question does not wait in a store: it needs a person.
    fn clarify<'a>(&'a self, question: &'a Clarification) -> BoxFuture<'a, ClarificationOutcome> {
        match &self.person {
            Some(person) => person.clarify(question),
            None => Box::pin(ready(ClarificationOutcome::NoPerson("there is no terminal".into()))),
        }
    }
}

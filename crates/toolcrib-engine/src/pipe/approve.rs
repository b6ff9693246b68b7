//! Requests approval of a call that a rule wants approved: from the turn's approver or the engine's,
//! otherwise from the client that answers the turn's questions. Without any, or if the approver
//! panics, the call is denied.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{
    __internal::panic_text, Approval, ApprovalRequest, Approver, CallPreview, ErrorCode, EventKind,
    NotStorableError, PendingCall, Rule,
};

use super::{
    call::{Batch, Call, Failure},
    intent, record,
};
use crate::{
    json::text_bytes,
    policy::questions::{Question, QuestionContext},
};

pub(super) async fn approve(
    batch: &Batch<'_>,
    call: &Call,
    pending: PendingCall<'_>,
    rule: &Rule,
    preview: Option<CallPreview>,
) -> Result<(), Failure> {
    let parent = batch.situation.personality.parent.as_deref();
    let (rule_of_task, id_of_task);
    let (rule, pending) = match parent {
        None => (rule, pending),
        // An approver sees which agent asks, and cannot take its call for one of the parent.
        Some(parent) => {
            let agent = &batch.situation.personality.id;
            let why = rule.reason.as_deref().unwrap_or(&rule.label);
            let reason = format!("the agent `{agent}` asks for a task of this run: {why}");
            rule_of_task = Rule { reason: Some(reason.into()), ..rule.clone() };
            id_of_task = Arc::<str>::from(format!("{}/{}", parent.call_id, call.id));
            (&rule_of_task, PendingCall { call_id: &id_of_task, ..pending })
        }
    };
    let asking = ApprovalStage { batch, call, rule, can_wait: parent.is_none() };
    let approver = batch.approver.or(batch.engine.approver.as_ref());
    if approver.is_none() && batch.questions.is_none() {
        return asking.denied(
            asking.told("needs approval, and no approver is available"),
            "no approver is configured",
        );
    }
    intent::before_wait(batch).await?;
    batch.events.emit(Some(batch.iteration), || EventKind::ApprovalRequested {
        tool: Arc::clone(&call.name),
        call_id: Arc::clone(&call.id),
        rule: Arc::clone(&rule.label),
        reason: rule.reason.as_ref().map(|reason| batch.engine.redactor.text(reason).into()),
    });
    let decision = AssertUnwindSafe(asking.decide(approver, pending, preview)).catch_unwind();
    tokio::select! {
        biased;
        () = batch.cancellation.cancelled() => {
            asking.settled("cancelled");
            Err(Failure::refused(ErrorCode::Cancelled, "the run was cancelled"))
        }
        _ = batch.halting.halted() => {
            asking.settled("cancelled");
            Err(batch.not_begun())
        }
        decision = decision => {
            asking.settled(word(decision.as_ref().ok()));
            asking.apply(decision)
        }
    }
}

/// The approval of one call.
struct ApprovalStage<'a> {
    batch: &'a Batch<'a>,
    call: &'a Call,
    rule: &'a Rule,
    /// Whether the call may be parked. The result of a child agent's task cannot wait.
    can_wait: bool,
}

impl ApprovalStage<'_> {
    async fn decide(
        &self,
        approver: Option<&Arc<dyn Approver>>,
        pending: PendingCall<'_>,
        preview: Option<CallPreview>,
    ) -> Approval {
        let Some(approver) = approver else { return self.ask_a_person(pending).await };
        let engine = self.batch.engine;
        let (redactor, args) = (engine.redactor.clone(), pending.args.clone());
        let work = move || redactor.storable(&args);
        let (origin, bytes) = (pending.tool.shared_origin(), text_bytes(pending.args));
        let arguments = engine.validators.aside(origin, bytes, work).await;
        let arguments = arguments.unwrap_or(Err(NotStorableError::Secret));
        let mut request = ApprovalRequest::new(pending, self.rule, &arguments);
        request.preview = preview;
        (request.position, request.alike) = (self.call.alike.position, self.call.alike.count);
        approver.approve(request).await
    }

    fn settled(&self, decision: &str) {
        self.batch.events.emit(Some(self.batch.iteration), || EventKind::ApprovalSettled {
            tool: Arc::clone(&self.call.name),
            call_id: Arc::clone(&self.call.id),
            decision: decision.into(),
        });
    }

    /// The result of the call's stage.
    fn apply(&self, decision: Result<Approval, Box<dyn Any + Send>>) -> Result<(), Failure> {
        match decision {
            Ok(Approval::Approved) => Ok(()),
            Ok(Approval::Refused(message)) => self.denied(message, "refused"),
            Ok(Approval::Failed { message, cause }) => self.denied(message, &cause),
            Ok(Approval::Parked(_) | Approval::Expired(_)) if !self.can_wait => self.denied(
                self.told("needs approval, and no person decides now"),
                "the call of a child agent cannot wait for approval",
            ),
            Ok(Approval::Parked(message) | Approval::Expired(message)) => {
                let label = &*self.rule.label;
                Err(Failure::refused(ErrorCode::AwaitingApproval, message).caused_by(label))
            }
            Ok(_) => self.denied(
                self.told("was not approved"),
                "the approver's decision is of an unknown kind",
            ),
            Err(panic) => self.denied(
                self.told("was not approved"),
                &format!("the approver panicked: {}", panic_text(&*panic)),
            ),
        }
    }

    fn denied(&self, message: String, why: &str) -> Result<(), Failure> {
        let label = &self.rule.label;
        record::denied(self.batch, self.call, Arc::clone(label), Some(why.into()));
        Err(Failure::refused(ErrorCode::Denied, message).caused_by(format!("{label}: {why}")))
    }

    /// The rule's own text for the model, otherwise what became of the call.
    fn told(&self, otherwise: &str) -> String {
        let otherwise = || format!("calling `{}` {otherwise}", self.call.name);
        self.rule.model_message.as_deref().map_or_else(otherwise, str::to_owned)
    }

    /// Uses the turn's questions without an approver.
    async fn ask_a_person(&self, pending: PendingCall<'_>) -> Approval {
        let Self { batch, call, rule, .. } = self;
        let asking = QuestionContext {
            questions: batch.questions,
            events: batch.events,
            redactor: &batch.engine.redactor,
            iteration: batch.iteration,
            cancellation: batch.cancellation,
        };
        let reason = rule.reason.clone().unwrap_or_else(|| {
            format!("{} asks before `{}` is called", rule.label, call.name).into()
        });
        let question = Question::new(reason)
            .payload(json!({
                "tool": &*call.name,
                "args": pending.args,
                "args_digest": pending.args_digest,
                "call_id": &**pending.call_id,
                "rule": &*rule.label,
            }))
            .answer_schema(json!({
                "type": "object",
                "properties": { "approve": { "type": "boolean" }, "message": { "type": "string" } },
                "required": ["approve"],
                "additionalProperties": false,
            }));
        let refused = |message: Option<String>| {
            Approval::Refused(message.unwrap_or_else(|| self.told("was not approved")))
        };
        match asking.ask(question).await.map(serde_json::from_value::<Answer>) {
            Ok(Ok(Answer { approve: true, .. })) => Approval::Approved,
            Ok(Ok(Answer { message, .. })) => refused(message),
            // The rejection's text is for the client, not for a model.
            Ok(Err(_)) | Err(_) => refused(None),
        }
    }
}

/// The decision in events.
fn word(decision: Option<&Approval>) -> &'static str {
    match decision {
        Some(Approval::Approved) => "granted",
        Some(Approval::Refused(_)) => "denied",
        Some(Approval::Parked(_)) => "waiting",
        Some(Approval::Expired(_)) => "expired",
        _ => "failed",
    }
}

/// The answer to such a question.
#[derive(Deserialize)]
struct Answer {
    approve: bool,
    #[serde(default)]
    message: Option<String>,
}

//! Requests approval of a call that a rule wants approved: from the turn's approver or the engine's,
//! otherwise from the client that answers the turn's questions. Without any, or if the approver
//! panics, the call is denied.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{
    __internal::panic_text, Approval, ApprovalRequest, ErrorCode, EventKind, NotStorableError,
    PendingCall, Rule,
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
) -> Result<(), Failure> {
    let label = &rule.label;
    let parent = batch.situation.personality.parent.as_deref();
    let (rule_of_task, id_of_task);
    let (rule, pending) = match parent {
        None => (rule, pending),
        // An approver sees which agent asks, and cannot take its call for one of the parent.
        Some(parent) => {
            let agent = batch.situation.personality.id();
            let why = rule.reason.as_deref().unwrap_or(label);
            let reason = format!("the agent `{agent}` asks for a task of this run: {why}");
            rule_of_task = Rule { reason: Some(reason.into()), ..rule.clone() };
            id_of_task = Arc::<str>::from(format!("{}/{}", parent.call_id, call.id));
            (&rule_of_task, PendingCall { call_id: &id_of_task, ..pending })
        }
    };
    let denied = |message: String, why: String| {
        record::denied(batch, call, Arc::clone(label), Some(why.as_str().into()));
        Err(Failure::refused(ErrorCode::Denied, message).caused_by(format!("{label}: {why}")))
    };
    let told = |otherwise: String| rule.model_message.as_deref().map_or(otherwise, str::to_owned);
    let approver = batch.approver.or(batch.engine.approver.as_ref());
    if approver.is_none() && batch.questions.is_none() {
        return denied(
            told(format!("calling `{}` needs approval, and no approver is available", call.name)),
            "no approver is configured".to_owned(),
        );
    }
    intent::before_wait(batch).await?;
    batch.events.emit(Some(batch.iteration), || EventKind::ApprovalRequested {
        tool: Arc::clone(&call.name),
        call_id: Arc::clone(&call.id),
        rule: Arc::clone(label),
        reason: rule.reason.as_ref().map(|reason| batch.engine.redactor.text(reason).into()),
    });
    let settled = |decision: &str| {
        batch.events.emit(Some(batch.iteration), || EventKind::ApprovalSettled {
            tool: Arc::clone(&call.name),
            call_id: Arc::clone(&call.id),
            decision: decision.into(),
        });
    };
    let decision = async {
        match approver {
            Some(approver) => {
                let (redactor, args) = (batch.engine.redactor.clone(), pending.args.clone());
                let work = move || redactor.storable(&args);
                let (origin, bytes) = (pending.tool.shared_origin(), text_bytes(pending.args));
                let arguments = batch.engine.validators.aside(origin, bytes, work).await;
                let arguments = arguments.unwrap_or(Err(NotStorableError::Secret));
                approver.approve(ApprovalRequest::new(pending, rule, &arguments)).await
            }
            None => ask_a_person(batch, call, pending, rule).await,
        }
    };
    let decision = AssertUnwindSafe(decision).catch_unwind();
    tokio::select! {
        biased;
        () = batch.cancellation.cancelled() => {
            settled("cancelled");
            Err(Failure::refused(ErrorCode::Cancelled, "the run was cancelled"))
        }
        _ = batch.halting.halted() => {
            settled("cancelled");
            Err(batch.not_begun())
        }
        decision = decision => {
            settled(word(decision.as_ref().ok()));
            match decision {
            Ok(Approval::Approved) => Ok(()),
            Ok(Approval::Refused(message)) => denied(message, "refused".to_owned()),
            Ok(Approval::Failed { message, cause }) => denied(message, cause),
            // The result of the task cannot wait.
            Ok(Approval::Parked(_) | Approval::Expired(_)) if parent.is_some() => denied(
                told(format!("calling `{}` needs approval, and no person decides now", call.name)),
                "the call of a child agent cannot wait for approval".to_owned(),
            ),
            Ok(Approval::Parked(message) | Approval::Expired(message)) => {
                Err(Failure::refused(ErrorCode::AwaitingApproval, message).caused_by(&**label))
            }
            Ok(_) => denied(
                told(format!("calling `{}` was not approved", call.name)),
                "the approver's decision is of an unknown kind".to_owned(),
            ),
            Err(panic) => denied(
                told(format!("calling `{}` was not approved", call.name)),
                format!("the approver panicked: {}", panic_text(&*panic)),
            ),
            }
        },
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

/// Uses the turn's questions without an approver.
async fn ask_a_person(
    batch: &Batch<'_>,
    call: &Call,
    pending: PendingCall<'_>,
    rule: &Rule,
) -> Approval {
    let asking = QuestionContext {
        questions: batch.questions,
        events: batch.events,
        redactor: &batch.engine.redactor,
        iteration: batch.iteration,
        cancellation: batch.cancellation,
    };
    let reason = rule
        .reason
        .clone()
        .unwrap_or_else(|| format!("{} asks before `{}` is called", rule.label, call.name).into());
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
    let refused =
        |message: Option<String>| {
            let otherwise = || format!("calling `{}` was not approved", call.name);
            Approval::Refused(message.unwrap_or_else(|| {
                rule.model_message.as_deref().map_or_else(otherwise, str::to_owned)
            }))
        };
    match asking.ask(question).await.map(serde_json::from_value::<Answer>) {
        Ok(Ok(Answer { approve: true, .. })) => Approval::Approved,
        Ok(Ok(Answer { message, .. })) => refused(message),
        // The rejection's text is for the client, not for a model.
        Ok(Err(_)) | Err(_) => refused(None),
    }
}

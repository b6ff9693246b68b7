//! `tools/call`: an iteration of its own, so that calls of one session run at the same time, but a
//! call of a sequential tool alone among those of its connection.

use std::{pin::pin, sync::Arc, time::Instant};

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResult},
    service::RequestContext,
};
use serde_json::{Value, json};
use toolcrib_core::{ErrorCode, ToolCall, ToolResult, millis};
use toolcrib_engine::{IterationError, SKILL_TOOLS};

use super::{
    Serving,
    access::Caller,
    access_log::AccessEntry,
    connection::Connection,
    list::{output_schema, refusal},
    progress, result,
    session::{Purpose, Scope, Session, Step, StepError},
};

pub(super) async fn call(
    serving: &Serving,
    caller: &Caller,
    scope: &Scope,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let began = Instant::now();
    let name: Arc<str> = request.name.as_ref().into();
    let mut entry = serving.gateway.log.is_some().then(|| {
        let mut entry = AccessEntry::new("tools/call", Some(caller));
        entry.session = scope.session().map(|session| Arc::clone(&session.id));
        entry.protocol = context.protocol_version().map(|version| version.to_string());
        entry.tool = Some(Arc::clone(&name));
        entry
    });
    let answer = answer(serving, scope, &name, request, context, entry.as_mut()).await;
    if let Some(mut entry) = entry {
        entry.duration_ms = millis(began.elapsed());
        serving.gateway.log(|| entry);
    }
    answer
}

async fn answer(
    serving: &Serving,
    scope: &Scope,
    name: &Arc<str>,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    mut entry: Option<&mut AccessEntry>,
) -> Result<CallToolResult, ErrorData> {
    let connection = context.extensions.get::<Connection>();
    let _place = connection.map(Connection::place).transpose().inspect_err(|refused| {
        if let Some(entry) = &mut entry {
            entry.error = Some(refused.message.as_ref().into());
        }
    })?;
    let step = tokio::select! {
        step = scope.step(Purpose::Look) => step,
        () = nobody_waits(context) => Err(StepError::from(IterationError::Cancelled)),
    };
    let step = step.map_err(|error| {
        if let Some(entry) = &mut entry {
            entry.error = Some(error.to_string().into());
        }
        refusal(&error)
    })?;
    let tool = step.iteration.menu().get(name).cloned();
    let session = step.session.clone();
    if let Some(entry) = &mut entry {
        entry.run_id = Some(Arc::clone(&step.run_id));
        entry.origin = tool.as_ref().map(|tool| tool.origin().into());
    }

    let alone = tool.as_ref().is_some_and(|tool| tool.sequential());
    let _share = match connection {
        None => None,
        Some(connection) => tokio::select! {
            share = connection.share(alone) => share,
            () = nobody_waits(context) => {
                // It does not run, and says so as any call that was cancelled.
                step.iteration.cancellation().cancel();
                None
            }
        },
    };
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    let call = ToolCall::new(context.id.to_string(), Arc::clone(name), arguments);
    // A step that is done, and what becomes of a skill, make another menu.
    let may_change = step.iteration.is_at_a_step() || SKILL_TOOLS.contains(&&**name);
    let result = run(step, call, context).await?;

    if let Some(entry) = entry {
        entry.code = result.code;
        entry.error = result.cause.clone();
        entry.chars = Some(result.text.chars().count());
    }
    if result.is_ok()
        && may_change
        && let Some(session) = session
    {
        recheck_after_the_answer(serving, &session, context);
    }
    match tool {
        Some(tool) => Ok(result::wire(result, output_schema(&tool).is_some())),
        None => Err(ErrorData::invalid_params(
            result.text.to_string(),
            Some(json!({ "code": result.code.unwrap_or(ErrorCode::NotAvailable) })),
        )),
    }
}

/// Runs one call, and passes its progress on where the client asked for it.
async fn run(
    mut step: Step,
    call: ToolCall,
    context: &RequestContext<RoleServer>,
) -> Result<ToolResult, ErrorData> {
    let cancellation = step.iteration.cancellation().clone();
    let call_id = Arc::clone(&call.id);
    let execute = step.iteration.execute(vec![call]);
    let results = async {
        match context.meta.get_progress_token() {
            Some(token) => {
                progress::passed_on(&step.events, &call_id, token, &context.peer, execute).await
            }
            None => execute.await,
        }
    };
    let mut results = pin!(results);
    let results = tokio::select! {
        results = &mut results => results,
        () = nobody_waits(context) => {
            // The body is told, and what it still says is its result.
            cancellation.cancel();
            results.await
        }
    };
    let missing = || ErrorData::internal_error("the call has no result", None);
    results.into_iter().next().ok_or_else(missing)
}

/// Done when the client cancels the request, or waits for nothing any more.
async fn nobody_waits(context: &RequestContext<RoleServer>) {
    let connection = context.extensions.get::<Connection>();
    let ended = async {
        match connection {
            Some(connection) => connection.ended().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = ended => {}
    }
}

/// Looks whether the session's menu is another one, once the answer is on its way: its token fires
/// then.
fn recheck_after_the_answer(
    serving: &Serving,
    session: &Arc<Session>,
    context: &RequestContext<RoleServer>,
) {
    let recheck = Arc::clone(&session.recheck);
    let answered = context.ct.clone();
    serving.running.spawn(async move {
        answered.cancelled().await;
        recheck.notify_one();
    });
}

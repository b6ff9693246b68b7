//! `tools/call`: a separate iteration, so that calls of one session run concurrently, but a call of
//! a sequential tool alone among those of its connection.

use std::{sync::Arc, time::Instant};

use futures_util::future::BoxFuture;
use rmcp::{
    ErrorData, Peer, RoleServer,
    model::{CallToolRequestParams, CallToolResult, ProgressToken, ProtocolVersion},
    service::RequestContext,
};
use serde_json::{Value, json};
use toolcrib_core::{
    __internal::millis, Audience, CancellationToken, ErrorCode, ToolCall, ToolResult,
};
use toolcrib_engine::{SKILL_TOOLS, TurnError};

use super::{
    Serving,
    access::Caller,
    access_log::AccessEntry,
    connection::Connection,
    list::{output_schema, refusal},
    progress, result,
    session::{Purpose, Scope, Session, Step},
};

/// A call's request, independent of the transport.
pub(super) struct Asked {
    /// The request's id.
    pub(super) id: Arc<str>,
    pub(super) protocol: Option<ProtocolVersion>,
    pub(super) connection: Option<Connection>,
    /// Fires when the client no longer needs a response.
    pub(super) unwanted: CancellationToken,
    /// Fires when the response has been written, or cannot be.
    pub(super) answered: CancellationToken,
    /// The receiver of progress, with its token.
    pub(super) progress: Option<(ProgressToken, Peer<RoleServer>)>,
}

impl Asked {
    /// From rmcp's context.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self {
            id: context.id.to_string().into(),
            protocol: context.protocol_version(),
            connection: context.extensions.get().cloned(),
            unwanted: context.ct.clone(),
            answered: context.ct.clone(),
            progress: context.meta.get_progress_token().map(|token| (token, context.peer.clone())),
        }
    }

    /// Done when the client cancels the request, or has gone.
    async fn nobody_waits(&self) {
        let ended = async {
            match &self.connection {
                Some(connection) => connection.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.unwanted.cancelled() => {}
            () = ended => {}
        }
    }
}

pub(super) async fn call(
    serving: &Serving,
    caller: &Caller,
    scope: &Scope,
    request: CallToolRequestParams,
    asked: &Asked,
) -> Result<CallToolResult, ErrorData> {
    let began = Instant::now();
    let name: Arc<str> = request.name.as_ref().into();
    let mut entry = serving.gateway.log.is_some().then(|| {
        let mut entry = AccessEntry::new("tools/call", Some(caller));
        entry.session = scope.session().map(|session| Arc::clone(&session.id));
        entry.protocol = asked.protocol.as_ref().map(ToString::to_string);
        entry.tool = Some(Arc::clone(&name));
        entry
    });
    let answer = answer(serving, scope, &name, request, asked, entry.as_mut()).await;
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
    asked: &Asked,
    mut entry: Option<&mut AccessEntry>,
) -> Result<CallToolResult, ErrorData> {
    let connection = asked.connection.as_ref();
    let _place = connection.map(Connection::place).transpose().inspect_err(|refused| {
        if let Some(entry) = &mut entry {
            entry.error = Some(refused.message.as_ref().into());
        }
    })?;
    let step = tokio::select! {
        biased;
        () = asked.nobody_waits() => Err(TurnError::Cancelled),
        step = scope.step(Purpose::Call(name)) => step,
    };
    let step = step.map_err(|error| {
        if let Some(entry) = &mut entry {
            entry.error = Some(error.to_string().into());
        }
        refusal(&error)
    })?;
    let tool = step.iteration.menu().get(name).cloned();
    // A model that called it before should read this as the result of its call.
    let is_away = tool.is_none() && step.iteration.withheld().is_away(name);
    let session = step.session.clone();
    if let Some(entry) = &mut entry {
        entry.turn_id = Some(Arc::clone(&step.turn_id));
        entry.origin = tool.as_ref().map(|tool| tool.origin().into());
    }

    let alone = tool.as_ref().is_some_and(|tool| tool.sequential());
    let _share = match connection {
        None => None,
        Some(connection) => tokio::select! {
            biased;
            () = asked.nobody_waits() => {
                // It does not run, and returns the error of a cancelled call.
                step.iteration.cancellation().cancel();
                None
            }
            share = connection.share(alone) => share,
        },
    };
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    let call = ToolCall::new(Arc::clone(&asked.id), Arc::clone(name), arguments);
    // A finished skill step, or a change of a skill, changes the menu.
    let may_change = step.iteration.has_skill_step() || SKILL_TOOLS.contains(&&**name);
    let is_remote = tool.as_ref().is_some_and(|tool| tool.mcp_server().is_some());
    let audience = if is_remote { Audience::Dashboard } else { Audience::User };
    let result = run(step, call, audience, asked).await?;

    if let Some(entry) = entry {
        entry.code = result.code;
        entry.error = result.cause.clone();
        entry.chars = Some(result.text.chars().count());
    }
    if result.is_ok()
        && may_change
        && let Some(session) = session
    {
        recheck_after_the_answer(serving, &session, asked);
    }
    match tool {
        Some(tool) => Ok(result::wire(result, output_schema(&tool).is_some())),
        None if is_away => Ok(result::wire(result, false)),
        None => Err(ErrorData::invalid_params(
            result.text.to_string(),
            Some(json!({ "code": result.code.unwrap_or(ErrorCode::NotAvailable) })),
        )),
    }
}

/// Runs one call, and forwards its progress for an audience if the client requested it.
async fn run(
    mut step: Step,
    call: ToolCall,
    audience: Audience,
    asked: &Asked,
) -> Result<ToolResult, ErrorData> {
    let cancellation = step.iteration.cancellation().clone();
    let call_id = Arc::clone(&call.id);
    let execute = step.iteration.execute(vec![call]);
    let mut results: BoxFuture<'_, _> = match &asked.progress {
        Some((token, client)) => Box::pin(progress::passed_on(
            &step.events,
            &call_id,
            audience,
            token.clone(),
            client,
            execute,
        )),
        None => Box::pin(execute),
    };
    let results = tokio::select! {
        biased;
        () = asked.nobody_waits() => {
            // The body is cancelled, and its final output is its result.
            cancellation.cancel();
            results.await
        }
        results = &mut results => results,
    };
    let missing = || ErrorData::internal_error("the call has no result", None);
    results.into_iter().next().ok_or_else(missing)
}

/// Checks whether the session's menu has changed, once the response has been written: its token
/// fires then.
fn recheck_after_the_answer(serving: &Serving, session: &Arc<Session>, asked: &Asked) {
    let recheck = Arc::clone(&session.recheck);
    let answered = asked.answered.clone();
    serving.running.spawn(async move {
        answered.cancelled().await;
        recheck.notify_one();
    });
}

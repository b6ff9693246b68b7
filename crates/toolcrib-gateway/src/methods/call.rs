//! `tools/call`: a separate iteration, so that calls of one session run concurrently, but a call of
//! a sequential tool alone among those of its connection.

use std::{sync::Arc, time::Instant};

use futures_util::future::BoxFuture;
use rmcp::{ErrorData, model::CallToolResult};
use serde_json::{Map, Value, json};
use tokio::sync::OwnedSemaphorePermit;
use toolcrib_core::{
    __internal::millis, Audience, ErrorCode, MissingReason, Tool, ToolCall, ToolResult, args_digest,
};
use toolcrib_engine::{CALL_TOOL, SEARCH_TOOLS, SKILL_TOOLS, TurnError};

use super::{Outcome, called_name, find_resource::link, list::output_schema};
use crate::{
    access::access_log::AccessEntry,
    client::{
        progress,
        request::RequestContext,
        sender::RecheckOnDrop,
        span::CallSpan,
        step::{Step, refusal},
    },
    wire::result::{self, Data},
};

/// The parameters; others are ignored.
struct Call {
    name: Arc<str>,
    arguments: Map<String, Value>,
}

impl Call {
    fn read(mut params: Map<String, Value>) -> Option<Self> {
        let Some(Value::String(name)) = params.remove("name") else { return None };
        let arguments = match params.remove("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return None,
        };
        Some(Self { name: name.into(), arguments })
    }
}

/// `tools/call`.
pub(crate) async fn call(context: &RequestContext<'_>, params: Map<String, Value>) -> Outcome {
    let began = Instant::now();
    let gateway = &context.serving.gateway;
    let mut entry = context.log_entry("tools/call");
    let span = CallSpan::open(context, &entry);
    let answer = match Call::read(params) {
        Some(call) if !gateway.is_recording() => {
            entry.tool = Some(call.name);
            let message = "the call was not made: this gateway cannot write its audit log, and makes \
                no calls without it; try again later";
            Err(ErrorData::internal_error(message, None))
        }
        Some(call) => {
            entry.tool = Some(Arc::clone(&call.name));
            if gateway.config.audit.is_some() {
                let arguments = Value::Object(call.arguments.clone());
                entry.arguments = Some(args_digest(&call.name, &arguments));
            }
            span.around(answer(context, call, &mut entry)).await
        }
        None => {
            let message =
                "`tools/call` takes `name`, a string, and `arguments`, an object or absent";
            Err(ErrorData::invalid_params(message, None))
        }
    };
    if let (Err(error), None, None) = (&answer, &entry.error, entry.code) {
        entry.error = Some(error.message.as_ref().into());
    }
    entry.duration_ms = millis(began.elapsed());
    span.close(&entry);
    gateway.log(entry);
    answer.map(Into::into)
}

async fn answer(
    context: &RequestContext<'_>,
    call: Call,
    entry: &mut AccessEntry,
) -> Result<CallToolResult, ErrorData> {
    let Call { name, arguments } = call;
    let _place = context.place()?;
    let step = tokio::select! {
        biased;
        () = context.no_longer_needed() => Err(TurnError::Cancelled),
        step = called_name::find(context, name) => step,
    };
    let (mut step, name) = step.map_err(|error| {
        entry.error = Some(error.to_string().into());
        refusal(&error)
    })?;
    let tool = step.iteration.menu().get(&name).cloned();
    let mut arguments = Value::Object(arguments);
    // The tool that runs: `call_tool` calls a deferred one.
    let (target, runs) = match &tool {
        Some(tool) if *name == *CALL_TOOL && tool.is_framework() => {
            let target = target_of(context, &step, &mut arguments);
            let tool = target.as_ref().and_then(|target| step.iteration.menu().get(target));
            (target, tool.cloned())
        }
        tool => (None, tool.clone()),
    };
    entry.turn_id = Some(Arc::clone(&step.turn_id));
    entry.origin = runs.as_ref().map(|tool| tool.origin().into());
    entry.read_only = runs.as_ref().map(|tool| tool.annotations().read_only);
    if let (Some(headers), Some(tool)) = (&context.headers, &tool) {
        headers.check(tool.input_schema(), &arguments)?;
    }

    let _share = share(context, &step, runs.as_ref()).await;
    let call = ToolCall::new(context.id.to_string(), Arc::clone(&name), arguments);
    // A finished skill step, a change of a skill, or a found tool changes the menu.
    let may_change =
        step.iteration.has_skill_step() || SKILL_TOOLS.contains(&&*name) || *name == *SEARCH_TOOLS;
    let server = runs.as_ref().and_then(|tool| tool.mcp_server());
    let audience = if server.is_some() { Audience::Dashboard } else { Audience::User };
    let mut result = run(&mut step, call, audience, context).await?;
    // The tool that was called: without a permitted target that is `call_tool` itself.
    let called = target.filter(|target| **target == *result.name).unwrap_or(name);
    let called = CalledTool::of(&step, &called);
    describe(&result, context.serving.gateway.config.log.is_some(), entry);
    settle(context, &step, &result, may_change).await?;
    if let Some(server) = server {
        link(context, &step, server, &mut result.blocks);
        if let Some(error) = result::protocol_error(&result) {
            return Err(error);
        }
    }
    let access = &context.caller.access;
    let fences = context.serving.gateway.fences(access, server.unwrap_or_default());
    called.response(result, data(context, runs.as_ref()), fences)
}

/// Waits until the tool may run beside the others of its connection: a sequential one alone.
async fn share(
    context: &RequestContext<'_>,
    step: &Step,
    tool: Option<&Tool>,
) -> Option<OwnedSemaphorePermit> {
    let alone = tool.is_some_and(|tool| tool.sequential());
    let connection = context.connection.as_ref()?;
    tokio::select! {
        biased;
        () = context.no_longer_needed() => {
            // It does not run, and returns the error of a cancelled call.
            step.iteration.cancellation().cancel();
            None
        }
        share = connection.share(alone) => share,
    }
}

/// Applies a result to the caller and its session, whose menu it `may_change`.
async fn settle(
    context: &RequestContext<'_>,
    step: &Step,
    result: &ToolResult,
    may_change: bool,
) -> Result<(), ErrorData> {
    context.remember(step, result).await?;
    let Some(session) = context.era.session() else { return Ok(()) };
    session.settle_approval(result);
    if result.is_ok() && may_change {
        // It is set once: this is the only call of the request.
        let _ = context.recheck.set(RecheckOnDrop(Arc::clone(&session.recheck)));
    }
    Ok(())
}

/// Describes the call as it was judged and ran: of the target of `call_tool`, and as a middleware
/// rewrote it.
fn describe(result: &ToolResult, has_chars: bool, entry: &mut AccessEntry) {
    entry.tool = Some(Arc::clone(&result.name));
    entry.arguments = entry.arguments.and(result.args_digest);
    entry.code = result.code;
    entry.error = result.cause.clone();
    entry.chars = has_chars.then(|| result.text.chars().count());
}

/// The data of its result that a client of this era may receive.
fn data(context: &RequestContext<'_>, tool: Option<&Tool>) -> Data {
    let is_remote = |tool: &Tool| tool.mcp_server().is_some();
    match (tool, context.era.session()) {
        (Some(tool), _) if output_schema(tool).is_some() => Data::Declared,
        // Before 2026-07-28, data is an object; a remote tool need not declare it.
        (Some(tool), Some(_)) if is_remote(tool) => Data::Object,
        (Some(tool), None) if is_remote(tool) => Data::Any,
        _ => Data::None,
    }
}

/// The known name of the target of `call_tool`, which replaces the client's name for it.
fn target_of(context: &RequestContext<'_>, step: &Step, arguments: &mut Value) -> Option<Arc<str>> {
    let Some(Value::String(target)) = arguments.get_mut("tool") else { return None };
    let names = &context.serving.gateway.config.names;
    let known = called_name::meant(names, step, target).unwrap_or_else(|| target.as_str().into());
    known.as_ref().clone_into(target);
    Some(known)
}

/// A called tool, for its client.
enum CalledTool {
    Offered,
    /// Its source is away. A model that called it before should read this as the result of its call.
    Away,
    Missing(MissingReason),
    Unknown,
}

impl CalledTool {
    fn of(step: &Step, name: &str) -> Self {
        if step.iteration.menu().get(name).is_some() {
            return Self::Offered;
        }
        if step.iteration.withheld().is_away(name) {
            return Self::Away;
        }
        called_name::missing(step, name).map_or(Self::Unknown, Self::Missing)
    }

    fn response(
        self,
        result: ToolResult,
        data: Data,
        fences: bool,
    ) -> Result<CallToolResult, ErrorData> {
        match self {
            Self::Offered => Ok(result::wire(result, data, fences)),
            Self::Away => Ok(result::wire(result, Data::None, true)),
            Self::Missing(reason) => {
                let message = format!("this tool is withheld: {reason}; go on without it");
                let data = json!({ "code": ErrorCode::NotAvailable, "reason": reason });
                Err(ErrorData::invalid_params(message, Some(data)))
            }
            Self::Unknown => {
                let data = json!({ "code": result.code.unwrap_or(ErrorCode::NotAvailable) });
                Err(ErrorData::invalid_params(result.text.to_string(), Some(data)))
            }
        }
    }
}

/// Runs one call, and forwards its progress for an audience if the client requested it.
async fn run(
    step: &mut Step,
    call: ToolCall,
    audience: Audience,
    context: &RequestContext<'_>,
) -> Result<ToolResult, ErrorData> {
    let cancellation = step.iteration.cancellation().clone();
    let call_id = Arc::clone(&call.id);
    let execute = step.iteration.execute_for(vec![call], Some(context.port));
    let mut results: BoxFuture<'_, _> = match context.may_report() {
        true => {
            let (events, client) = (&step.events, &context.open);
            Box::pin(progress::passed_on(events, &call_id, audience, client, execute))
        }
        false => Box::pin(execute),
    };
    let results = tokio::select! {
        biased;
        () = context.no_longer_needed() => {
            // The body is cancelled, and its final output is its result.
            cancellation.cancel();
            results.await
        }
        results = &mut results => results,
    };
    let missing = || ErrorData::internal_error("the call has no result", None);
    results.into_iter().next().ok_or_else(missing)
}

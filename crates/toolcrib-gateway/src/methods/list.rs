//! `tools/list`: the menu of an iteration, in the protocol's format.

use std::{borrow::Cow, sync::Arc, time::Instant};

use rmcp::{
    ErrorData,
    model::{JsonObject, ListToolsResult, MetaObject},
};
use serde_json::{Map, Value, json};
use toolcrib_core::{__internal::millis, Tool};
use toolcrib_engine::{Iteration, MissingTool, Notice, TurnError};
use toolcrib_mcp::__internal as mcp;

use super::Outcome;
use crate::{
    access::access_log::{AccessEntry, ListedTool},
    client::{
        missing, names::ORIGIN_OF_SERVER, request::RequestContext, session::Purpose, step::refusal,
    },
};

/// The key under which a listing names its missing sources.
const NOTICES: &str = "toolcrib/notices";

pub(crate) async fn list(context: &RequestContext<'_>, params: Map<String, Value>) -> Outcome {
    let began = Instant::now();
    refuse_cursor(&params)?;
    let log = |describe: &dyn Fn(&mut AccessEntry)| {
        let mut entry = context.log_entry("tools/list");
        entry.duration_ms = millis(began.elapsed());
        describe(&mut entry);
        context.serving.gateway.log(entry);
    };
    let _place = context.place().inspect_err(|refused| {
        log(&|entry| entry.error = Some(refused.message.as_ref().into()));
    })?;
    let step = tokio::select! {
        step = context.step(Purpose::Tell) => step,
        () = context.no_longer_needed() => Err(TurnError::Cancelled),
    };
    log(&|entry| match &step {
        Ok(step) => {
            entry.turn_id = Some(Arc::clone(&step.turn_id));
            if context.serving.gateway.config.log.is_some() {
                describe(&step.iteration, entry);
            }
        }
        Err(error) => entry.error = Some(error.to_string().into()),
    });
    let step = step.map_err(|error| refusal(&error))?;
    let menu = step.iteration.menu();
    let gateway = &context.serving.gateway;
    let longest = context.caller.access.max_name_chars;
    let names = gateway.config.names.of(menu, longest);
    let tools = menu.tools().iter().zip(names).map(|(tool, name)| {
        let mut tool = mcp::tool(tool, output_schema(tool));
        if let Cow::Owned(name) = name {
            tool.name = name.into();
        }
        tool
    });
    let mut answer = ListToolsResult::with_all_items(tools.collect());
    let withheld = step.iteration.withheld();
    gateway.metrics.withheld(withheld.missing_origins());
    answer.meta = meta(&step.iteration, |tool| gateway.config.names.of_missing(tool, longest));
    match context.era.session() {
        Some(session) => session.tell_missing(gateway, withheld.missing(), &context.client),
        None => {
            answer = answer.with_ttl_ms(millis(step.iteration.fresh_for()));
            let (access, least) = (&context.caller.access, context.port.log_level());
            let missing = withheld.missing().iter().collect();
            let message = gateway.missing_message(access, missing, least);
            message.into_iter().for_each(|message| context.client.offer(message));
        }
    }
    Ok(answer.into())
}

fn refuse_cursor(params: &Map<String, Value>) -> Result<(), ErrorData> {
    let message = match params.get("cursor") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::String(_)) => {
            "unknown cursor: the list of tools has one page, without a cursor"
        }
        Some(_) => "these are not the parameters of `tools/list`",
    };
    Err(ErrorData::invalid_params(message, None))
}

/// The notices and the missing tools that the client may know.
fn meta<'a>(
    iteration: &'a Iteration,
    name: impl Fn(&'a MissingTool) -> Cow<'a, str>,
) -> Option<MetaObject> {
    let withheld = iteration.withheld();
    let known = iteration.notices().iter().filter(|notice| withheld.may_know(notice));
    let notices: Vec<_> = known.map(Notice::model_text).collect();
    let mut meta = JsonObject::new();
    if !notices.is_empty() {
        meta.insert(NOTICES.to_owned(), json!(notices));
    }
    if let Some(missing) = missing::in_meta(withheld.missing(), name) {
        meta.insert(missing::KEY.to_owned(), missing);
    }
    (!meta.is_empty()).then(|| meta.into())
}

/// Adds a listing to the log entry.
fn describe(iteration: &Iteration, entry: &mut AccessEntry) {
    entry.offered = Some(iteration.menu().len());
    entry.withheld = Some(iteration.withheld().len());
    entry.notices = iteration.notices().to_vec();
    let offered = iteration.menu().tools().iter().map(|tool| ListedTool {
        name: tool.name().to_string().into(),
        origin: tool.origin().into(),
        withheld_by: None,
        reason: None,
    });
    // Reasons are expensive, and only those of remote tools are logged.
    let withheld = iteration.withheld().tools_from(is_remote).map(|tool| ListedTool {
        name: tool.name,
        origin: tool.origin,
        withheld_by: Some(tool.by),
        reason: Some(tool.reason),
    });
    entry.remote = offered.filter(|tool| is_remote(&tool.origin)).chain(withheld).collect();
}

/// Whether a tool, or a source by its path, is of an MCP server.
fn is_remote(origin: &str) -> bool {
    origin.split(" > ").any(|source| source.starts_with(ORIGIN_OF_SERVER))
}

/// The schema of a tool's structured results that clients of both eras accept: those before
/// 2026-07-28 know only schemas of objects, and refuse the whole list over another one.
pub(crate) fn output_schema(tool: &Tool) -> Option<&JsonObject> {
    let schema = tool.definition().output_schema()?.as_object()?;
    schema.get("type").is_some_and(|kind| kind == "object").then_some(schema)
}

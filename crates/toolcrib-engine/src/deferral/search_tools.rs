use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
    time::Instant,
};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolcrib_core::{
    __internal::millis, EventKind, InvalidToolError, Menu, Tool, ToolContext, ToolError, ToolName,
    TurnEvents,
};

use super::{Indexes, closed, framework_tool};

/// The name of the tool with which a model finds deferred tools.
pub const SEARCH_TOOLS: &str = "search_tools";

/// The number of tools that a search names for each need, at most.
pub const FOUND_PER_NEED: usize = 5;

/// Needs of one search. Each costs a model about 500 characters of result.
const MOST_NEEDS: usize = 5;

/// In characters. A need is one step of a task, not the task.
const LONGEST_NEED: usize = 300;

/// Of a description's first sentence, in characters.
const LONGEST_LINE: usize = 200;

static TOOL: LazyLock<Result<Tool, InvalidToolError>> = LazyLock::new(|| {
    framework_tool(SEARCH_TOOLS)
        .description(
            "Finds tools that are not listed here. State each need as one short step, such as \
             \"send an email\". Returns a list of tools for each need, the best first. With \
             `schemas`, each tool has the `input_schema` that a call needs.",
        )
        .input_schema(closed(
            &json!({
                "needs": {
                    "type": "array",
                    "items": { "type": "string", "minLength": 1, "maxLength": LONGEST_NEED },
                    "minItems": 1,
                    "maxItems": MOST_NEEDS,
                    "description": "The needs, one step each.",
                },
                "schemas": {
                    "type": "boolean",
                    "description": "Whether to include the input schemas. Default: true.",
                },
                "server": { "type": "string", "description": "Only tools of this MCP server." },
                "toolset": { "type": "string", "description": "Only tools of this toolset." },
            }),
            &["needs"],
        ))
        .read_only()
        .idempotent()
        .blocking(search)
});

/// The tool. It searches the menu of the iteration that its call belongs to, which the pipe passes
/// as a [`Search`].
pub(crate) fn search_tools() -> Option<&'static Tool> {
    TOOL.as_ref().ok()
}

#[derive(Deserialize)]
struct Args {
    needs: Vec<String>,
    schemas: Option<bool>,
    server: Option<Box<str>>,
    toolset: Option<Box<str>>,
}

/// The data of an iteration that its searches need.
pub(crate) struct Search {
    pub(crate) menu: Arc<Menu>,
    pub(crate) indexes: Arc<Indexes>,
    pub(crate) events: Arc<TurnEvents>,
    pub(crate) iteration: u32,
    /// The tools that searches of this turn have named.
    pub(crate) revealed: Arc<Mutex<HashSet<ToolName>>>,
}

#[expect(clippy::needless_pass_by_value, reason = "a body receives its arguments by value")]
fn search(args: Args, cx: ToolContext) -> Result<Value, ToolError> {
    let began = Instant::now();
    let search = cx.handle::<Search>()?;
    let deferred = search.menu.deferred();
    let index = search.indexes.of(deferred);
    let is_of = |filter: &Option<Box<str>>, group: Option<&str>| {
        filter.as_deref().is_none_or(|wanted| group == Some(wanted))
    };
    let admits = |tool: &Tool| {
        is_of(&args.server, tool.mcp_server()) && is_of(&args.toolset, tool.toolset())
    };
    // The index may have been built from equal tools of another turn.
    let found: Vec<Vec<&Tool>> = args
        .needs
        .iter()
        .map(|need| {
            let hits = index.search_among(need, FOUND_PER_NEED, admits);
            hits.iter().filter_map(|hit| search.menu.get(hit.tool.name())).collect()
        })
        .collect();
    report(search, &args, &found, &cx, began);
    let with_schemas = args.schemas.unwrap_or(true);
    let lists = args.needs.iter().zip(&found).map(|(need, tools)| {
        let tools: Vec<Value> = tools.iter().map(|tool| shown(tool, with_schemas)).collect();
        json!({ "need": need, "tools": tools })
    });
    Ok(json!({ "found": lists.collect::<Vec<_>>() }))
}

fn report(search: &Search, args: &Args, found: &[Vec<&Tool>], cx: &ToolContext, began: Instant) {
    let names = |tools: &Vec<&Tool>| tools.iter().map(|tool| tool.name().clone()).collect();
    let found: Vec<Vec<ToolName>> = found.iter().map(names).collect();
    let new: Vec<ToolName> = {
        let mut revealed = search.revealed.lock();
        found.iter().flatten().filter(|name| revealed.insert((*name).clone())).cloned().collect()
    };
    search.events.emit(Some(search.iteration), || EventKind::ToolsSearched {
        needs: args.needs.iter().map(|need| cx.redacted(need)).collect(),
        found,
        among: search.menu.deferred().len(),
        duration_ms: millis(began.elapsed()),
    });
    if !new.is_empty() {
        search.events.emit(Some(search.iteration), || EventKind::ToolsRevealed { tools: new });
    }
}

/// A tool as a model reads it in a list.
fn shown(tool: &Tool, with_schema: bool) -> Value {
    let sentence = toolcrib_search::first_sentence(tool.description());
    let mut line: String = sentence.chars().take(LONGEST_LINE).collect();
    if line.len() < sentence.len() {
        line.push('…');
    }
    let mut shown = Map::new();
    shown.insert("name".to_owned(), tool.name().as_str().into());
    shown.insert("description".to_owned(), line.into());
    if with_schema {
        shown.insert("input_schema".to_owned(), tool.input_schema().clone());
    }
    shown.into()
}

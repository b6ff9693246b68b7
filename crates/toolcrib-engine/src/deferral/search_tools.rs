use std::{
    sync::{Arc, LazyLock},
    time::Instant,
};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolcrib_core::{
    __internal::millis, EventKind, InvalidToolError, Menu, SEARCH_TOOLS, Tool, ToolContext,
    ToolError, ToolName, TurnEvents,
};
use toolcrib_search::{Encoded, Hit};

use super::{Indexes, closed, framework_tool};

/// The number of tools that a search names for each need, at most.
pub const FOUND_PER_NEED: usize = 5;

/// Needs of one search. Each costs a model about 500 characters of result.
const MOST_NEEDS: usize = 5;

/// The tools that a search can skip in each list.
const MOST_SKIPPED: usize = 45;

/// In characters. A need is one step of a task, not the task.
const LONGEST_NEED: usize = 300;

/// Of a description's first sentence, in characters.
const LONGEST_LINE: usize = 200;

/// The characters of the note about omitted schemas, at most.
const NOTE_CHARS: usize = 100;

/// The characters around a schema in a list.
const SCHEMA_KEY_CHARS: usize = r#","input_schema":"#.len();

static TOOL: LazyLock<Result<Tool, InvalidToolError>> = LazyLock::new(|| {
    framework_tool(SEARCH_TOOLS)
        .description(
            "Finds tools that are not listed here. State each need as one short step, such as \
             \"send an email\". Returns a list of tools for each need, the best first: name and \
             purpose. Set `schemas` for the `input_schema` of tools that you do not know. If no \
             listed tool fits, use other words, or continue the lists with `offset`.",
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
                    "description": "Whether to include the input schemas. Default: false.",
                },
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": MOST_SKIPPED,
                    "description": format!(
                        "Tools to skip in each list; {FOUND_PER_NEED} for the next ones. Default: 0."
                    ),
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
    offset: Option<usize>,
    server: Option<Box<str>>,
    toolset: Option<Box<str>>,
}

/// The data of an iteration that its searches need.
pub(crate) struct Search {
    pub(crate) menu: Arc<Menu>,
    pub(crate) indexes: Arc<Indexes>,
    pub(crate) encoded: Option<Arc<Encoded>>,
    pub(crate) events: Arc<TurnEvents>,
    pub(crate) iteration: u32,
}

#[expect(clippy::needless_pass_by_value, reason = "a body receives its arguments by value")]
fn search(args: Args, cx: ToolContext) -> Result<Value, ToolError> {
    let began = Instant::now();
    let search = cx.handle::<Search>()?;
    let index = search.indexes.of(&search.menu);
    let is_of = |filter: &Option<Box<str>>, group: Option<&str>| {
        filter.as_deref().is_none_or(|wanted| group == Some(wanted))
    };
    let admits = |tool: &Tool| {
        is_of(&args.server, tool.mcp_server()) && is_of(&args.toolset, tool.toolset())
    };
    let skipped = args.offset.unwrap_or(0).min(MOST_SKIPPED);
    let mut encoder_error = None;
    let mut hits = |need: &str| -> Vec<Hit> {
        let most = skipped + FOUND_PER_NEED;
        // After an error, the other needs do not wait for the encoder.
        let encoded = search.encoded.as_ref().filter(|_| encoder_error.is_none());
        match encoded.map(|encoded| index.search_encoded(encoded, need, most, admits)) {
            Some(Ok(hits)) => return hits,
            Some(Err(error)) => encoder_error = Some(cx.redacted(&error.to_string())),
            None => {}
        }
        index.search_among(need, most, admits)
    };
    // The index may have been built from equal tools of another turn.
    let found: Vec<Vec<&Tool>> = args
        .needs
        .iter()
        .map(|need| {
            let hits = hits(need);
            let shown = hits.iter().skip(skipped);
            shown.filter_map(|hit| search.menu.get(hit.tool.name())).collect()
        })
        .collect();
    let budget = cx.result_budget_chars();
    let (lists, found) = lists(&args, found, budget);
    search.events.emit(Some(search.iteration), || EventKind::ToolsSearched {
        needs: args.needs.iter().map(|need| cx.redacted(need)).collect(),
        found,
        among: search.menu.deferred().len(),
        encoder_error,
        duration_ms: millis(began.elapsed()),
    });
    Ok(lists)
}

/// The lists within a budget of characters, and the names in them. Text that is cut would not be
/// JSON: instead, the last schemas are omitted, then the last tools.
fn lists(args: &Args, found: Vec<Vec<&Tool>>, budget: usize) -> (Value, Vec<Vec<ToolName>>) {
    let mut shown: Vec<Vec<(&Tool, Map<String, Value>)>> = found
        .into_iter()
        .map(|tools| tools.into_iter().map(|tool| (tool, line(tool))).collect())
        .collect();
    let chars = |value: &Value| value.to_string().chars().count();
    let whole = |shown: &[Vec<(&Tool, Map<String, Value>)>]| {
        let lists = args.needs.iter().zip(shown).map(|(need, tools)| {
            let tools: Vec<_> = tools.iter().map(|(_, line)| line).collect();
            json!({ "need": need, "tools": tools })
        });
        json!({ "found": lists.collect::<Vec<_>>() })
    };
    let mut used = chars(&whole(&shown));
    while used > budget
        && let Some(longest) = shown.iter_mut().max_by_key(|tools| tools.len())
        && longest.pop().is_some()
    {
        used = chars(&whole(&shown));
    }
    let mut omitted = 0;
    if args.schemas.unwrap_or(false) {
        used += NOTE_CHARS;
        for rank in 0..FOUND_PER_NEED {
            for (tool, line) in shown.iter_mut().filter_map(|tools| tools.get_mut(rank)) {
                let schema = tool.input_schema();
                let more = chars(schema) + SCHEMA_KEY_CHARS;
                if used + more <= budget {
                    used += more;
                    line.insert("input_schema".to_owned(), schema.clone());
                } else {
                    omitted += 1;
                }
            }
        }
    }
    let mut lists = whole(&shown);
    if let Some(fields) = lists.as_object_mut().filter(|_| omitted > 0) {
        let note = format!("{omitted} schemas do not fit here; search with fewer needs");
        fields.insert("note".to_owned(), note.into());
    }
    let names =
        |tools: Vec<(&Tool, _)>| tools.into_iter().map(|(tool, _)| tool.name().clone()).collect();
    (lists, shown.into_iter().map(names).collect())
}

/// A tool as a model reads it in a list, without its schema.
fn line(tool: &Tool) -> Map<String, Value> {
    let sentence = toolcrib_search::first_sentence(tool.description());
    let mut text: String = sentence.chars().take(LONGEST_LINE).collect();
    if text.len() < sentence.len() {
        text.push('…');
    }
    let mut line = Map::new();
    line.insert("name".to_owned(), tool.name().as_str().into());
    line.insert("description".to_owned(), text.into());
    line
}

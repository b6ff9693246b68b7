//! Tools that are made for the artifacts of a moment.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};
use toolcrib_core::{
    InvalidTool, Lifetime, OnCollision, SpoolError, Tool, ToolContext, ToolError, ToolRegistry,
};

use super::{builder, cursor_property, find, first_page, output};
use crate::{
    kinds::{ArtifactKind, Query, Text},
    turn::TurnArtifacts,
};

/// What the id is called in forged tools.
const CALL_ID: &str = "callId";

/// Makes a tool for each query that the artifacts of a turn can be asked: `artifact_head` and what else
/// each of them has, and by kind `artifact_json_get`, `artifact_md_headings` and so on. Each takes a
/// `callId`, which can only be one of the ids that there are now; a registry without tools where there
/// are none.
///
/// The tools are for one iteration, and take the place of those of the iteration before. Neighbour:
/// [`Artifacts::tools`](crate::Artifacts::tools) are three tools that are always the same, so that a
/// prompt's prefix stays cached; take these where a model needs the ids in front of it.
///
/// An executor merges them with tools of its own and offers the result in its iteration, so that calls to
/// them go through the engine (`Iteration::offer` there). It binds what it merged, so that they are gone when the turn is acked:
///
/// ```
/// # use std::sync::Arc;
/// # use serde_json::json;
/// # use toolcrib_artifacts::{ArtifactSource, Artifacts, MemoryStore, forge_tools};
/// # use toolcrib_core::{Tool, ToolCall, ToolContext, ToolRegistry};
/// # use toolcrib_engine::{Engine, IterationContext, TurnEnd, TurnOptions, TurnRunner};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let artifacts = Artifacts::new(MemoryStore::new());
/// # let main = ToolRegistry::new();
/// # let ping = Tool::builder("ping").description("Answers.");
/// # main.register(ping.handler(|_: serde_json::Value, _: ToolContext| async { "pong" })?)?;
/// # let runner = TurnRunner::new(Engine::builder().build()?);
/// let executor = |mut cx: IterationContext| {
///     let turn = artifacts.turn(Arc::clone(cx.identity()), cx.run_id());
///     let main = main.clone();
///     async move {
///         # turn.keep(ArtifactSource::of("read_log", "call_1"), b"one\ntwo")?;
///         let forged = forge_tools(&turn)?;
///         let merged = ToolRegistry::merge([&main, &forged])?;
///         merged.bind_context(&cx);
///         let menu = cx.offer(&merged)?; // to show a model of your own; here it asks for the last line
///         assert_eq!(menu.len(), 1 + 7);
///         let last = ToolCall::new("call_2", "artifact_tail", json!({ "callId": "call_1", "n": 1 }));
///         assert_eq!(&*cx.execute(vec![last]).await[0].value, "two");
///         cx.ack()?;
///         assert_eq!(merged.all().len(), 1);
///         Ok(())
///     }
/// };
/// let outcome = runner.run(TurnOptions::default(), executor).await?;
/// assert!(matches!(outcome.end, TurnEnd::Acked));
/// # Ok(())
/// # }
/// ```
///
/// Where the binding is forgotten, or another registry is bound, they stay, with ids of then:
///
/// ```
/// # use std::sync::Arc;
/// # use toolcrib_artifacts::{ArtifactSource, Artifacts, MemoryStore, forge_tools};
/// # use toolcrib_core::ToolRegistry;
/// # use toolcrib_engine::{Engine, IterationContext, TurnEnd, TurnOptions, TurnRunner};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let artifacts = Artifacts::new(MemoryStore::new());
/// # let runner = TurnRunner::new(Engine::builder().build()?);
/// let executor = |cx: IterationContext| {
///     let turn = artifacts.turn(Arc::clone(cx.identity()), cx.run_id());
///     let main = ToolRegistry::new();
///     async move {
///         # turn.keep(ArtifactSource::of("read_log", "call_1"), b"one\ntwo")?;
///         let merged = ToolRegistry::merge([&main, &forge_tools(&turn)?])?;
///         main.bind_context(&cx);
///         cx.ack()?;
///         assert!(merged.has("artifact_grep"));
///         Ok(())
///     }
/// };
/// let outcome = runner.run(TurnOptions::default(), executor).await?;
/// assert!(matches!(outcome.end, TurnEnd::Acked));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ForgeError`] when the store cannot say what there is, or a kind's queries cannot be tools.
pub fn forge_tools(turn: &TurnArtifacts) -> Result<ToolRegistry, ForgeError> {
    let registry = ToolRegistry::new();
    let live = turn.live()?;
    if live.is_empty() {
        return Ok(registry);
    }
    let all: Vec<_> = live.iter().map(|entry| Arc::clone(&entry.id)).collect();
    for query in Text.queries() {
        registry.overwrite(tool(turn, "artifact", &query, &all, Asks::Text)?);
    }
    // Kinds of one family are asked by the same tools.
    let mut families: IndexMap<String, Family> = IndexMap::new();
    for entry in &live {
        let kind = turn.artifacts().known_kinds().named(&entry.note.kind);
        if kind.name() == Text.name() {
            continue;
        }
        let family = families.entry(kind.family().to_owned());
        let family = family.or_insert(Family { kind, ids: Vec::new() });
        family.ids.push(Arc::clone(&entry.id));
    }
    for (family, Family { kind, ids }) in &families {
        for query in kind.queries() {
            let prefix = format!("artifact_{family}");
            registry.overwrite(tool(turn, &prefix, &query, ids, Asks::Kind)?);
        }
    }
    Ok(registry)
}

/// Tools that cannot be forged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForgeError {
    /// The store cannot say which artifacts there are.
    #[error("the artifacts cannot be listed: {0}")]
    Spool(#[from] SpoolError),
    /// A kind's query cannot be a tool.
    #[error("a kind's query cannot be a tool: {0}")]
    Tool(#[from] InvalidTool),
}

/// Artifacts that are asked by the same tools.
struct Family {
    kind: Arc<dyn ArtifactKind>,
    ids: Vec<Arc<str>>,
}

/// Whose query a forged tool asks.
#[derive(Clone, Copy)]
enum Asks {
    Text,
    Kind,
}

fn tool(
    turn: &TurnArtifacts,
    prefix: &str,
    query: &Query,
    ids: &[Arc<str>],
    asks: Asks,
) -> Result<Tool, InvalidTool> {
    let name: Arc<str> = format!("{prefix}_{}", query.name).into();
    let mut beside = Map::new();
    beside.insert(
        CALL_ID.to_owned(),
        json!({ "enum": ids, "description": "Which result: the id of its call." }),
    );
    if query.pages {
        beside.insert("cursor".to_owned(), cursor_property());
    }
    let schema = query.schema_with(beside, &[CALL_ID]);
    let description = format!("Of a large result that was kept: {}", query.description);
    let (turn, query) = (turn.clone(), Arc::clone(&query.name));
    builder(&name.clone(), &description)
        .input_schema(schema)
        .ephemeral(Lifetime::Iteration)
        .on_collision(OnCollision::Replace)
        .blocking(move |mut args: Map<String, Value>, cx: ToolContext| {
            let id = args.remove(CALL_ID);
            let cursor = args.remove("cursor");
            let (id, cursor) = (id.as_ref().and_then(Value::as_str), cursor.as_ref());
            // Looked for again: it may have gone since the tool was made.
            let artifact = find(&turn, id.unwrap_or_default())?;
            let page = first_page(&turn, &name, &cx)
                .at(cursor.and_then(Value::as_str), artifact.content())?;
            let (args, cancel) = (Value::Object(args), cx.cancellation());
            let answer = match asks {
                Asks::Text => artifact.ask_text(&query, &args, page, cancel)?,
                Asks::Kind => turn.artifacts().ask(&artifact, &query, &args, page, cancel)?,
            };
            Ok::<_, ToolError>(output(&artifact, answer))
        })
}

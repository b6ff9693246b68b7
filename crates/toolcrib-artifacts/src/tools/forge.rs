//! Tools generated for the current artifacts.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};
use toolcrib_core::{
    ArtifactStoreError, InvalidToolError, Lifetime, OnCollision, Tool, ToolContext, ToolError,
    ToolRegistry,
};

use super::{builder, cursor_property, find, first_page, output};
use crate::{
    kinds::{
        Text,
        kind::{ArtifactKind, Query},
    },
    turn::TurnArtifacts,
};

/// The name of the id argument in forged tools.
const CALL_ID: &str = "callId";

/// Makes a tool for each query of a turn's artifacts: `artifact_head` and the other queries of
/// every artifact, and by kind `artifact_json_get`, `artifact_md_headings` and so on. Each takes a
/// `callId`, restricted to the current ids; without artifacts the registry is empty.
///
/// The tools are for one iteration, and replace those of the previous one. Neighbor:
/// [`Artifacts::tools`](crate::Artifacts::tools) are three constant tools that keep a prompt's
/// prefix cached; use forged tools if a model needs the ids in their schemas.
///
/// An executor merges them with its own tools and offers the result in its iteration, so that calls
/// to them go through the engine (`Iteration::offer` there). It binds the merged registry, so that
/// they are removed when the turn is acked:
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
///     let turn = artifacts.turn(Arc::clone(cx.identity()), cx.turn_id());
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
/// Without the binding, or if another registry is bound, they stay with outdated ids:
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
///     let turn = artifacts.turn(Arc::clone(cx.identity()), cx.turn_id());
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
/// [`ForgeError`] if the store cannot list its artifacts, or a kind's queries are not valid tools.
pub fn forge_tools(turn: &TurnArtifacts) -> Result<ToolRegistry, ForgeError> {
    let registry = ToolRegistry::new();
    let live = turn.live()?;
    if live.is_empty() {
        return Ok(registry);
    }
    let all: Vec<_> = live.iter().map(|entry| Arc::clone(&entry.id)).collect();
    for query in Text.queries() {
        registry.overwrite(tool(turn, "artifact", &query, &all, QueryOwner::Text)?);
    }
    // Kinds of one family share their tools.
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
            registry.overwrite(tool(turn, &prefix, &query, ids, QueryOwner::Kind)?);
        }
    }
    Ok(registry)
}

/// An error of [`forge_tools`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForgeError {
    /// The store cannot list its artifacts.
    #[error("the artifacts cannot be listed: {0}")]
    Spool(#[from] ArtifactStoreError),
    /// A kind's query is not a valid tool.
    #[error("a kind's query cannot be a tool: {0}")]
    Tool(#[from] InvalidToolError),
}

/// Artifacts that share their tools.
struct Family {
    kind: Arc<dyn ArtifactKind>,
    ids: Vec<Arc<str>>,
}

/// The owner of a forged tool's query.
#[derive(Clone, Copy)]
enum QueryOwner {
    Text,
    Kind,
}

fn tool(
    turn: &TurnArtifacts,
    prefix: &str,
    query: &Query,
    ids: &[Arc<str>],
    asks: QueryOwner,
) -> Result<Tool, InvalidToolError> {
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
    let description = format!("Of a large stored result: {}", query.description);
    let (turn, query) = (turn.clone(), Arc::clone(&query.name));
    builder(&name.clone(), &description)
        .input_schema(schema)
        .ephemeral(Lifetime::Iteration)
        .on_collision(OnCollision::Replace)
        .blocking(move |mut args: Map<String, Value>, cx: ToolContext| {
            let id = args.remove(CALL_ID);
            let cursor = args.remove("cursor");
            let (id, cursor) = (id.as_ref().and_then(Value::as_str), cursor.as_ref());
            // Looked up again: it may have expired since the tool was made.
            let artifact = find(&turn, id.unwrap_or_default())?;
            let page = first_page(&turn, &name, &cx)
                .at(cursor.and_then(Value::as_str), artifact.content())?;
            let (args, cancel) = (Value::Object(args), cx.cancellation());
            let answer = match asks {
                QueryOwner::Text => artifact.ask_text(&query, &args, page, cancel)?,
                QueryOwner::Kind => turn.artifacts().ask(&artifact, &query, &args, page, cancel)?,
            };
            Ok::<_, ToolError>(output(&artifact, answer))
        })
}

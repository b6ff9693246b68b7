//! Shared helpers.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_artifacts::{
    Artifact, ArtifactSource, Artifacts, MemoryStore, TurnArtifacts, forge_tools,
};
use toolcrib_core::{ErrorCode, Identity, Tool, ToolContext, ToolContextParts, ToolError};

/// A turn with artifacts in memory.
pub(crate) fn turn() -> TurnArtifacts {
    turn_of(&Artifacts::new(MemoryStore::new()), "c1")
}

pub(crate) fn turn_of(artifacts: &Artifacts, conversation: &str) -> TurnArtifacts {
    artifacts.turn(Arc::new(Identity::conversation(conversation)), "run-1")
}

/// Stores a content under the id `call`.
pub(crate) fn keep(turn: &TurnArtifacts, content: impl AsRef<[u8]>) -> Artifact {
    keep_as(turn, "call", content)
}

pub(crate) fn keep_as(turn: &TurnArtifacts, id: &str, content: impl AsRef<[u8]>) -> Artifact {
    turn.keep(ArtifactSource::of("tests", id), content.as_ref()).unwrap()
}

/// Stores a content with this kind under the id `call`.
pub(crate) fn keep_kind(turn: &TurnArtifacts, kind: &str, content: impl AsRef<[u8]>) {
    turn.keep(ArtifactSource::of("tests", "call").kind(kind), content.as_ref()).unwrap();
}

/// Runs a query on all pages, and returns their contents.
pub(crate) fn pages(turn: &TurnArtifacts, name: &str, args: &Value) -> Vec<String> {
    let mut asked = json!({ "id": "call", "query": name, "args": args });
    let mut pages = Vec::new();
    loop {
        let answer = ask(turn, "artifact_query", asked.clone()).unwrap();
        pages.push(body(&answer).to_owned());
        match cursor(&answer) {
            Some(cursor) => asked["cursor"] = json!(cursor),
            None => return pages,
        }
    }
}

/// A call's context for the conversation `c1`.
pub(crate) fn context(budget: usize) -> ToolContext {
    context_of("c1", budget)
}

pub(crate) fn context_of(conversation: &str, budget: usize) -> ToolContext {
    ToolContext::from(ToolContextParts {
        identity: Arc::new(Identity::conversation(conversation)),
        turn_id: "run-1".into(),
        result_budget_chars: budget,
        ..ToolContextParts::detached()
    })
}

/// Calls a tool, and waits for its answer.
pub(crate) fn call(tool: &Tool, args: Value, cx: ToolContext) -> Result<String, ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(tool.call(args, cx)).map(|output| output.value)
}

/// Calls one of the three stable tools with 80,000 characters of budget.
pub(crate) fn ask(turn: &TurnArtifacts, name: &str, args: Value) -> Result<String, ToolError> {
    ask_within(turn, name, args, 80_000)
}

pub(crate) fn ask_within(
    turn: &TurnArtifacts,
    name: &str,
    args: Value,
    budget: usize,
) -> Result<String, ToolError> {
    let tools = turn.artifacts().tools().unwrap();
    let tool = tools.iter().find(|tool| *tool.name() == *name).unwrap();
    call(tool, args, context(budget))
}

/// Runs a query of the artifact `call`.
pub(crate) fn query(turn: &TurnArtifacts, query: &str, args: Value) -> Result<String, ToolError> {
    let mut asked = json!({ "id": "call", "query": query });
    asked["args"] = args;
    ask(turn, "artifact_query", asked)
}

/// Calls a forged tool about the artifact `call`.
pub(crate) fn forged(turn: &TurnArtifacts, name: &str, args: Value) -> Result<String, ToolError> {
    let registry = forge_tools(turn).unwrap();
    let mut args = args;
    args["callId"] = json!("call");
    call(&registry.get(name).unwrap(), args, context(80_000))
}

/// The cursor at the end of an answer.
pub(crate) fn cursor(answer: &str) -> Option<String> {
    let last = answer.lines().next_back()?;
    let (_, cursor) = last.split_once("cursor \"")?;
    cursor.strip_suffix("\"]").map(str::to_owned)
}

/// An answer without its status.
pub(crate) fn body(answer: &str) -> &str {
    match answer.rsplit_once('\n') {
        Some((body, last)) if last.starts_with('[') && last.ends_with(']') => body,
        _ if answer.starts_with('[') && answer.ends_with(']') => "",
        _ => answer,
    }
}

/// The model's text of an invalid call.
pub(crate) fn invalid(outcome: Result<String, ToolError>) -> String {
    let error = outcome.unwrap_err();
    assert_eq!(error.code, ErrorCode::InputInvalid, "{error:?}");
    error.message
}

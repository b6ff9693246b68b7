//! What a model is given to look at artifacts with.

mod forge;
mod query;
mod read;
mod search;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{
    InvalidTool, SpoolError, Spooling, Tool, ToolBuilder, ToolContext, ToolError, ToolOutput,
    fence_chars,
};

pub use self::forge::{ForgeError, forge_tools};
use crate::{
    artifact::Artifact,
    artifacts::Artifacts,
    page::{Answer, Page},
    turn::TurnArtifacts,
};

/// The tool that reads an artifact: its beginning, its end, lines or bytes.
pub const ARTIFACT_READ: &str = "artifact_read";

/// The tool that searches an artifact for a regular expression.
pub const ARTIFACT_SEARCH: &str = "artifact_search";

/// The tool that asks an artifact what its kind knows.
pub const ARTIFACT_QUERY: &str = "artifact_query";

/// The tools that are there whatever the artifacts.
pub const ARTIFACT_TOOLS: [&str; 3] = [ARTIFACT_READ, ARTIFACT_SEARCH, ARTIFACT_QUERY];

/// How many ids an error lists.
const LISTED_IDS: usize = 20;

/// How much of an id that does not exist is repeated.
const SHOWN_ID: usize = 64;

impl Artifacts {
    /// The three tools that artifacts are looked at with, whatever the artifacts: `artifact_read`,
    /// `artifact_search` and `artifact_query`. Their schemas never change, so that a menu with them
    /// stays the same bytes; ids are plain texts, and an error lists those that there are. What a call
    /// may read is what its own identity has.
    ///
    /// # Errors
    /// [`InvalidTool`] never, in a version that passes its own tests.
    pub fn tools(&self) -> Result<Vec<Tool>, InvalidTool> {
        Ok(vec![read::tool(self)?, search::tool(self)?, query::tool(self)?])
    }

    fn of_call(&self, cx: &ToolContext) -> TurnArtifacts {
        self.turn(Arc::new(cx.identity().clone()), cx.run_id())
    }
}

/// What all tools of artifacts have in common.
fn builder(name: &str, description: &str) -> ToolBuilder {
    Tool::builder(name)
        .description(description)
        .toolset("artifacts")
        .read_only()
        .idempotent()
        .untrusted()
        .spooling(Spooling::Never)
        .origin("artifacts")
}

/// The artifact of an id, or an error that says which ones there are.
fn find(turn: &TurnArtifacts, id: &str) -> Result<Artifact, ToolError> {
    turn.get(id).map_err(|error| match error {
        SpoolError::Unknown { .. } => {
            let shown: String = id.chars().take(SHOWN_ID).collect();
            let there = match turn.live() {
                Ok(live) => listed(&live.iter().map(|entry| &*entry.id).collect::<Vec<_>>()),
                Err(_) => "and they cannot be listed".to_owned(),
            };
            let shown = shown.escape_debug();
            ToolError::input_invalid(format!("there is no artifact `{shown}`; {there}"))
        }
        error => error.into(),
    })
}

/// The newest ids, newest first.
fn listed(ids: &[&str]) -> String {
    if ids.is_empty() {
        return "there are none".to_owned();
    }
    let newest: Vec<_> = ids.iter().rev().take(LISTED_IDS).copied().collect();
    let all = if newest.len() < ids.len() {
        format!("the newest of {} are", ids.len())
    } else {
        "there are".to_owned()
    };
    format!("{all}: {}", newest.join(", "))
}

/// The first page of what a call may be answered, with its fence inside of what it was promised.
fn first_page(turn: &TurnArtifacts, tool: &str, cx: &ToolContext) -> Page {
    let promised = cx.result_budget_chars().saturating_sub(fence_chars(tool));
    Page::first(promised.min(turn.artifacts().limits().answer_chars))
}

/// Answers as a tool's output.
fn output(artifact: &Artifact, answer: Answer) -> ToolOutput {
    ToolOutput::text(answer.rendered(artifact.content()))
}

fn cursor_property() -> Value {
    json!({
        "type": "string", "maxLength": 64,
        "description": "What an earlier answer gave to go on with; all other arguments as before.",
    })
}

fn id_property() -> Value {
    json!({ "type": "string", "description": "The artifact's id." })
}

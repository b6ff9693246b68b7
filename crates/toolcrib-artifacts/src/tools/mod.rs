//! The tools by which a model reads artifacts.

mod forge;
mod query;
mod read;
mod search;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{
    __internal::fence_chars, ArtifactPolicy, ArtifactStoreError, InvalidToolError, Tool,
    ToolBuilder, ToolContext, ToolError, ToolOutput,
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

/// The tool that runs the queries of an artifact's kind.
pub const ARTIFACT_QUERY: &str = "artifact_query";

/// The tools that are independent of the artifacts.
pub const ARTIFACT_TOOLS: [&str; 3] = [ARTIFACT_READ, ARTIFACT_SEARCH, ARTIFACT_QUERY];

/// The maximum number of ids in an error.
const LISTED_IDS: usize = 20;

/// The maximum length of an unknown id in an error.
const SHOWN_ID: usize = 64;

impl Artifacts {
    /// The three tools for all artifacts: `artifact_read`, `artifact_search` and `artifact_query`.
    /// Their schemas are constant, so that a menu with them stays identical to the byte; ids are
    /// plain strings, and an error lists the existing ones. A call can read only artifacts of its
    /// own identity.
    ///
    /// # Errors
    /// [`InvalidToolError`] never, in a version that passes its own tests.
    pub fn tools(&self) -> Result<Vec<Tool>, InvalidToolError> {
        Ok(vec![read::tool(self)?, search::tool(self)?, query::tool(self)?])
    }

    fn of_call(&self, cx: &ToolContext) -> TurnArtifacts {
        self.turn(Arc::new(cx.identity().clone()), cx.turn_id())
    }
}

/// The common part of all artifact tools.
fn builder(name: &str, description: &str) -> ToolBuilder {
    Tool::builder(name)
        .description(description)
        .toolset("artifacts")
        .read_only()
        .idempotent()
        .untrusted()
        .artifact_policy(ArtifactPolicy::Never)
        .origin("artifacts")
}

/// The artifact with an id, or an error that lists the existing ones.
fn find(turn: &TurnArtifacts, id: &str) -> Result<Artifact, ToolError> {
    turn.get(id).map_err(|error| match error {
        ArtifactStoreError::Unknown { .. } => {
            let shown: String = id.chars().take(SHOWN_ID).collect();
            let there = match turn.live() {
                Ok(live) => listed(&live.iter().map(|entry| &*entry.id).collect::<Vec<_>>()),
                Err(_) => "the existing ones cannot be listed".to_owned(),
            };
            let shown = shown.escape_debug();
            ToolError::input_invalid(format!("artifact `{shown}` does not exist; {there}"))
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

/// The first page of a call's answer, within its guaranteed budget, fence included.
fn first_page(turn: &TurnArtifacts, tool: &str, cx: &ToolContext) -> Page {
    let promised = cx.result_budget_chars().saturating_sub(fence_chars(tool));
    Page::first(promised.min(turn.artifacts().limits().answer_chars))
}

/// The answer as a tool's output.
fn output(artifact: &Artifact, answer: Answer) -> ToolOutput {
    let origin = artifact.entry().note.text_origin;
    ToolOutput::text(answer.rendered(artifact.content())).text_origin(origin)
}

fn cursor_property() -> Value {
    json!({
        "type": "string", "maxLength": 64,
        "description": "The cursor of an earlier answer; keep all other arguments.",
    })
}

fn id_property() -> Value {
    json!({ "type": "string", "description": "The artifact's id." })
}

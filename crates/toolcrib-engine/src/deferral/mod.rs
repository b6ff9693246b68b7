//! Deferred tools: permitted, and absent from the definitions that a model reads. A model finds them
//! with `search_tools` and calls them with `call_tool`, or by their names once they are listed.

mod call_tool;
mod indexes;
mod revealed;
mod search_tools;

use std::sync::Arc;

pub use toolcrib_core::{CALL_TOOL, SEARCH_TOOLS};
use toolcrib_core::{Glob, Tool, ToolBuilder, ToolMatch};
use toolcrib_search::{Encoded, Encoder};

pub(crate) use self::{
    call_tool::call_tool,
    indexes::Indexes,
    search_tools::{Search, search_tools},
};
pub use self::{revealed::RevealedTools, search_tools::FOUND_PER_NEED};
use crate::json::closed;

/// Which permitted tools are deferred: see [`EngineBuilder::defer`](crate::EngineBuilder::defer).
///
/// Personality, skills, gates and policy decide first. A tool that they withhold is not deferred:
/// no search finds it.
#[derive(Debug, Clone)]
pub struct Deferral {
    matches: Vec<ToolMatch>,
    above: Option<usize>,
    reveal: Reveal,
    max_revealed: usize,
    encoded: Option<Arc<Encoded>>,
}

/// How a model calls the deferred tools that it has found.
///
/// A model whose vendor loads found tools itself calls them by their names in both cases: the
/// definitions of its request do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Reveal {
    /// With `call_tool`. The definitions never change, so the vendor's prompt cache stays valid.
    #[default]
    CallTool,
    /// By their names: their definitions are appended to the others, in the order of their
    /// finding. On vendors whose definitions precede the messages this costs the prompt cache of
    /// the conversation.
    Append,
}

impl Reveal {
    /// Every way to call found tools.
    pub const ALL: [Self; 2] = [Self::CallTool, Self::Append];

    /// The word of a project file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CallTool => "call_tool",
            Self::Append => "append",
        }
    }
}

/// The default number of tools that stay revealed: more than one search finds.
const MAX_REVEALED: usize = 40;

impl Default for Deferral {
    fn default() -> Self {
        Self {
            matches: Vec::new(),
            above: None,
            reveal: Reveal::default(),
            max_revealed: MAX_REVEALED,
            encoded: None,
        }
    }
}

impl Deferral {
    /// Defers only tools that [declare](toolcrib_core::ToolDefinition::deferred) it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Defers all tools of an iteration that has more than this many.
    #[must_use]
    pub fn above(mut self, tools: usize) -> Self {
        self.above = Some(tools);
        self
    }

    /// Sets how a model calls found tools. Default: [`Reveal::CallTool`].
    #[must_use]
    pub fn reveal(mut self, reveal: Reveal) -> Self {
        self.reveal = reveal;
        self
    }

    /// Sets the number of tools that stay revealed in a conversation. The least recently used one
    /// beyond it is evicted; a search finds it again. Default: 40.
    #[must_use]
    pub fn max_revealed(mut self, tools: usize) -> Self {
        self.max_revealed = tools;
        self
    }

    /// Adds an encoder, such as an embedding model: a search sums the score of the words, of which
    /// the best is 1, and `weight` times the cosine of the need's vector and the tool's. If the encoder
    /// fails, the words alone count, and the event of the search says why. Default: no encoder.
    #[must_use]
    pub fn encoder(mut self, encoder: Arc<dyn Encoder>, weight: f32) -> Self {
        self.encoded = Some(Arc::new(Encoded::new(encoder, weight)));
        self
    }

    pub(crate) fn encoded(&self) -> Option<&Arc<Encoded>> {
        self.encoded.as_ref()
    }

    /// How a model calls found tools.
    pub(crate) fn how(&self) -> Reveal {
        self.reveal
    }

    /// The number of tools that stay revealed.
    pub(crate) fn limit(&self) -> usize {
        self.max_revealed
    }

    /// Defers tools whose names match one of these patterns.
    #[must_use]
    pub fn tools<G: Into<Arc<str>>>(self, patterns: impl IntoIterator<Item = G>) -> Self {
        self.matching(ToolMatch { names: globs(patterns), ..ToolMatch::default() })
    }

    /// Defers tools of the toolsets that match one of these patterns.
    #[must_use]
    pub fn toolsets<G: Into<Arc<str>>>(self, patterns: impl IntoIterator<Item = G>) -> Self {
        self.matching(ToolMatch { toolsets: globs(patterns), ..ToolMatch::default() })
    }

    /// Defers tools of MCP servers whose names match one of these patterns.
    #[must_use]
    pub fn mcp_servers<G: Into<Arc<str>>>(self, patterns: impl IntoIterator<Item = G>) -> Self {
        self.matching(ToolMatch { mcp_servers: globs(patterns), ..ToolMatch::default() })
    }

    /// Defers tools whose [origin](toolcrib_core::ToolDefinition::origin) matches one of these
    /// patterns.
    #[must_use]
    pub fn origins<G: Into<Arc<str>>>(self, patterns: impl IntoIterator<Item = G>) -> Self {
        self.matching(ToolMatch { origins: globs(patterns), ..ToolMatch::default() })
    }

    fn matching(mut self, tools: ToolMatch) -> Self {
        self.matches.push(tools);
        self
    }

    /// Takes the deferred ones out of the permitted tools of an iteration, in order. A tool that
    /// `stays` for another reason is not deferred.
    pub fn take(&self, tools: &mut Vec<Tool>, stays: impl Fn(&Tool) -> bool) -> Vec<Tool> {
        let counted = tools.iter().filter(|tool| !tool.is_framework()).count();
        let are_many = self.above.is_some_and(|above| counted > above);
        let declares = |tool: &Tool| tool.deferred() == Some(true);
        if !are_many && self.matches.is_empty() && !tools.iter().any(declares) {
            return Vec::new();
        }
        let is_deferred = |tool: &mut Tool| {
            let by_default =
                || are_many || self.matches.iter().any(|matches| matches.matches(tool));
            !tool.is_framework() && tool.deferred().unwrap_or_else(by_default) && !stays(tool)
        };
        tools.extract_if(.., is_deferred).collect()
    }
}

fn globs<G: Into<Arc<str>>>(patterns: impl IntoIterator<Item = G>) -> Vec<Glob> {
    patterns.into_iter().map(Glob::new).collect()
}

/// Begins a built-in tool, without description, schema and body.
fn framework_tool(name: &str) -> ToolBuilder {
    Tool::builder(name).origin("tool search").framework()
}

//! Tools, engines and a model for benches.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use toolcrib_agent::{Agent, Settings, TurnLimits};
use toolcrib_core::{
    InvalidToolError, ListContext, Model, ModelChunk, ModelRequest, ModelResponse, ModelStream,
    Tool, ToolCall, ToolContext, gated_tools, static_tools,
};
use toolcrib_engine::{Engine, EngineBuilder, Redactor};

use crate::table::Outcome;

#[derive(Deserialize)]
struct Args {
    number: u64,
}

/// A tool that answers at once. Each has a different schema, of about 250 characters.
///
/// # Errors
/// Never: every number makes a valid tool.
pub fn tool(number: usize) -> Result<Tool, InvalidToolError> {
    Tool::builder(format!("look_up_{number:04}"))
        .description(format!("Looks a record up in ledger {number} by its number."))
        .input_schema(json!({
            "type": "object",
            "properties": {
                "number": {
                    "type": "integer",
                    "minimum": 0,
                    "description": format!("The record's number in ledger {number}."),
                },
                "details": { "type": "boolean", "description": "Whether to add its history." },
            },
            "required": ["number"],
            "additionalProperties": false,
        }))
        .read_only()
        .handler(
            |args: Args, _: ToolContext| async move { format!("record {}: open", args.number) },
        )
}

/// Tools 0 to `count` - 1.
///
/// # Errors
/// Those of [`tool`].
pub fn tools(count: usize) -> Result<Vec<Tool>, InvalidToolError> {
    (0..count).map(tool).collect()
}

/// The menu in a bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Menu {
    /// Ten tools.
    Ten,
    /// A thousand tools.
    Thousand,
    /// A thousand tools, of which a closure admits twenty.
    Gated,
}

impl Menu {
    /// All menus.
    pub const ALL: [Self; 3] = [Self::Ten, Self::Thousand, Self::Gated];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ten => "10 tools",
            Self::Thousand => "1,000 tools",
            Self::Gated => "1,000 gated to 20",
        }
    }

    /// An engine that offers it. It redacts nothing, whatever the environment contains.
    ///
    /// # Errors
    /// Those of [`tool`].
    pub fn engine(self) -> Result<EngineBuilder, InvalidToolError> {
        let source = static_tools(tools(if self == Self::Ten { 10 } else { 1000 })?);
        let source = match self {
            Self::Ten | Self::Thousand => source,
            Self::Gated => gated_tools("first_20", source, |tool: &Tool, _: &ListContext| {
                **tool.name() < *"look_up_0020"
            }),
        };
        Ok(engine().provider(source))
    }
}

/// An agent without limits that offers a menu, for runs with this many calls.
///
/// # Errors
/// Those of [`tool`].
pub fn agent(menu: Menu, model: Arc<dyn Model>, calls: usize) -> Outcome<Agent> {
    let settings = Settings {
        // The last one answers.
        max_iterations: u32::try_from(calls)? + 1,
        turn_limits: TurnLimits::NONE,
        ..Settings::default()
    };
    Ok(Agent::new(menu.engine()?.build()?, model, settings))
}

/// An engine without tools that redacts nothing, whatever the environment contains.
pub fn engine() -> EngineBuilder {
    Engine::builder().redactor(Redactor::default())
}

/// A call of tool 7, as a model writes it.
pub fn call(id: usize) -> ToolCall {
    ToolCall::unparsed(format!("call_{id}"), "look_up_0007", r#"{"number": 1042}"#)
}

/// The same call, with arguments that a client has parsed.
fn parsed_call(id: usize) -> ToolCall {
    ToolCall::new(format!("call_{id}"), "look_up_0007", json!({ "number": 1042 }))
}

/// A runtime of one thread.
///
/// # Errors
/// If the system cannot create it.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_time().build()
}

/// A model as code: requests one call of tool 7 at once, a given number of times, and then answers.
/// Serves one run after the other.
#[derive(Debug)]
pub struct Caller<F> {
    calls: usize,
    asked: AtomicUsize,
    call: fn(usize) -> ToolCall,
    watch: F,
}

impl<F: Fn(&ModelRequest) + Send + Sync + 'static> Caller<F> {
    /// A model that requests this many calls, and shows each request to `watch` first.
    pub fn new(calls: usize, watch: F) -> Self {
        Self { calls, asked: AtomicUsize::new(0), call, watch }
    }

    /// The same with parsed arguments, as scripted models and most own implementations give them.
    #[must_use]
    pub fn with_parsed_arguments(self) -> Self {
        Self { call: parsed_call, ..self }
    }
}

impl<F: Fn(&ModelRequest) + Send + Sync + 'static> Model for Caller<F> {
    fn name(&self) -> &str {
        "bench"
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        (self.watch)(&request);
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) % (self.calls + 1);
        let response = if asked < self.calls {
            ModelResponse { calls: vec![(self.call)(asked)], ..ModelResponse::default() }
        } else {
            ModelResponse { text: "Done.".to_owned(), ..ModelResponse::default() }
        };
        Box::pin(stream::iter([Ok(ModelChunk::Done(response))]))
    }
}

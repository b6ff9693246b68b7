//! Toolcrib is the tool layer for LLM agents. For each model request it selects the tools that a
//! model may see; it limits what each call may do, and cleans what comes back.
//!
//! By default this crate contains the vocabulary, the `Engine` and `#[tool]`, which a custom loop
//! requires. The root has the everyday names, and the `prelude` those of most programs:
//!
//! | module | contains |
//! |---|---|
//! | `tool` | a tool, its definition, the context and the output of a call |
//! | `provider`, `registry` | lists of tools: fixed, fetched, cached, gated; edited within a turn |
//! | `policy`, `middleware` | decisions by rules, by people, in code; reducers of results |
//! | `skills` | instructions with tools |
//! | `engine`, `turn` | the engine and its limits; turns, iterations, menus, typed answers |
//! | `event`, `explain` | what happened, also for one audience; why a tool is offered or withheld |
//! | `reliability` | retries, fallbacks, circuit breakers |
//! | `secrets`, `untrusted` | secrets and redaction; text that another party wrote |
//! | `models`, `artifacts`, `sessions`, `policy::approvals` | models, artifacts, everything that outlives the process: ports, and with their features implementations |
//!
//! | feature | adds |
//! |---|---|
//! | `agent` | `agent`: a loop with history, wrap-up and events |
//! | `artifacts` | stores and tools for results that are too large for a model, in `artifacts` |
//! | `engine` (default) | `Engine` and what it is built with; a crate that only brings tools can do without |
//! | `lint` | `lint`: finds tools that a model may confuse or misread, that cost too many tokens, or that try to manipulate it |
//! | `macros` (default) | `#[tool]`, and `schemars` for types that a tool takes |
//! | `models` | the scripted model, in `models` |
//! | `vendors` | models of the APIs of OpenAI, Anthropic, Gemini and Ollama, in `models`; `capabilities::http`, the guarded HTTP client |
//! | `command`, `files`, `http`, `sql` | `capabilities` and `tools`: what tools reach of the world, as handles, and the declared kinds over them; `command` has `tools::terminal` and `tools::code` too, `sql` has `tools::sql_explore` |
//! | `clarify` | `tools::clarify`: a tool that asks the person of the turn |
//! | `memory` | `tools::memory`: tools that keep topics in files, and search earlier sessions |
//! | `task` | `tools::task`: a tool that gives tasks to child agents |
//! | `todo` | `tools::todo`: tools that keep a list of tasks in the session |
//! | `hub` | `tools::hub`: tools from a catalog that an HTTP server keeps |
//! | `openapi` | `tools::openapi`: tools from the operations of an OpenAPI document |
//! | `web` | `tools::web`: tools that read pages as Markdown, and search the web |
//! | `mcp` | `mcp`: MCP servers as providers of tools |
//! | `gateway` | an engine as an MCP server, in `mcp` |
//! | `project` | `project`: project folders, `toolcrib.toml` and skills; with all that a project may declare |
//! | `approvals` | approval of calls at the terminal and from other processes, in `policy::approvals` |
//! | `sessions` | `agent`, and stores of conversations that outlive the process, in `sessions` |
//! | `testing` | `testing`: models that misbehave, sources that fail, recorded events, contract checks, also for stores; with `mcp`, a mock of a server |
//! | `tracing` | `Events::write_spans`: a span of the crate `tracing` for each turn, iteration, discovery, model call and tool call |
//! | `full` | all of these |
//!
//! # Layers
//!
//! - `prelude`: the names that most programs use.
//! - `artifacts`, `engine`, `event`, `explain`, `mcp`, `middleware`, `models`, `policy`, `provider`, `registry`: re-exports.
//! - `reliability`, `secrets`, `sessions`, `skills`, `tool`, `turn`, `untrusted`: re-exports.
//! - `typed`: runs whose answer is a type.
//! - `pages`: the programs in the documentation.
//! - `__private`: what `#[tool]` uses.

// No links above: they would be broken wherever a feature is off.

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private;
pub mod artifacts;
#[cfg(feature = "engine")]
pub mod engine;
pub mod event;
#[cfg(feature = "engine")]
pub mod explain;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod middleware;
pub mod models;
#[cfg(all(doctest, feature = "full"))]
mod pages;
pub mod policy;
pub mod prelude;
pub mod provider;
pub mod registry;
pub mod reliability;
pub mod secrets;
pub mod sessions;
pub mod skills;
pub mod tool;
pub mod turn;
#[cfg(all(feature = "agent", feature = "macros"))]
mod typed;
pub mod untrusted;

/// The version of schemars that [`#[tool]`](macro@tool) makes schemas with, for types that derive
/// `JsonSchema` in a crate without its own schemars. Derived code looks for a `schemars` in
/// scope, which the [`prelude`] has too; `#[schemars(crate = "toolcrib::schemars")]` does without.
#[cfg(feature = "macros")]
pub use schemars;
#[cfg(feature = "agent")]
pub use toolcrib_agent as agent;
#[cfg(feature = "capabilities")]
pub use toolcrib_capabilities as capabilities;
#[doc(inline)]
pub use toolcrib_core::{
    Args, BoxFuture, CancellationToken, ErrorCode, Identity, Json, State, Tool, ToolContext,
    ToolError, ToolOutput, ToolProvider, err, ok,
};
#[cfg(feature = "engine")]
#[doc(inline)]
pub use toolcrib_engine::Engine;
#[cfg(feature = "lint")]
pub use toolcrib_lint as lint;
#[cfg(feature = "macros")]
pub use toolcrib_macros::tool;
#[cfg(feature = "project")]
pub use toolcrib_project as project;
#[cfg(feature = "testing")]
pub use toolcrib_testing as testing;
#[cfg(feature = "tools")]
pub use toolcrib_tools as tools;

/// The examples of `#[tool]`, whose crate cannot depend on this one.
#[cfg(doctest)]
#[doc = include_str!("../../toolcrib-macros/src/tool.md")]
mod tool_examples {}

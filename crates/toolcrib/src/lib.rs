//! Toolcrib is the tool layer for LLM agents. At every step it decides what a model may see, bounds
//! what a call may do, and cleans what comes back.
//!
//! By default this crate is the vocabulary, the `Engine` and `#[tool]`: all that a loop of your own
//! needs.
//!
//! | feature | adds |
//! |---|---|
//! | `agent` | `agent`: a loop with history, wrap-up and events |
//! | `artifacts` | `artifacts`: results that are too large for a model, kept and read piece by piece |
//! | `engine` (default) | `Engine` and what it is built with; a crate that only brings tools can do without |
//! | `lint` | `lint`: what a model would mix up, misunderstand, pay for or be talked into by a catalogue |
//! | `macros` (default) | `#[tool]`, and `schemars` for types that a tool takes |
//! | `models` | `models`: the scripted model |
//! | `vendors` | models behind the APIs of OpenAI, Anthropic, Gemini and Ollama, in `models`; `scope::http`, for a client of one's own |
//! | `command`, `http`, `sql` | `scope` and `tools`: what tools reach of the world, as handles, and the declared kinds over them |
//! | `hub` | `tools::hub`: tools from a catalogue that an HTTP server keeps |
//! | `mcp` | `mcp`: MCP servers as providers of tools |
//! | `gateway` | an engine as an MCP server, in `mcp` |
//! | `project` | `project`: project folders, `toolcrib.toml` and skills |
//! | `testing` | `testing`: models that misbehave, sources that fail, recorded events, contract checks; with `mcp`, a mock of a server |
//! | `full` | all of these |

// No links up there: they would be broken wherever a feature is off.

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private;
pub mod prelude;

/// The version of schemars that [`#[tool]`](macro@tool) makes schemas with, for types that derive
/// `JsonSchema` in a crate without schemars of its own. What is derived looks for a `schemars` in
/// scope, which the [`prelude`] has too; `#[schemars(crate = "toolcrib::schemars")]` does without.
#[cfg(feature = "macros")]
pub use schemars;
#[cfg(feature = "agent")]
pub use toolcrib_agent as agent;
#[cfg(feature = "artifacts")]
pub use toolcrib_artifacts as artifacts;
pub use toolcrib_core::*;
#[cfg(feature = "engine")]
pub use toolcrib_engine::*;
#[cfg(feature = "lint")]
pub use toolcrib_lint as lint;
#[cfg(feature = "macros")]
pub use toolcrib_macros::tool;
#[cfg(feature = "mcp")]
pub use toolcrib_mcp as mcp;
#[cfg(feature = "models")]
pub use toolcrib_models as models;
#[cfg(feature = "project")]
pub use toolcrib_project as project;
#[cfg(any(feature = "command", feature = "http", feature = "sql", feature = "vendors"))]
pub use toolcrib_scope as scope;
#[cfg(feature = "testing")]
pub use toolcrib_testing as testing;
#[cfg(any(feature = "command", feature = "http", feature = "sql"))]
pub use toolcrib_tools as tools;

/// The code in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So does that in the page about providers.
#[cfg(all(doctest, feature = "hub"))]
#[doc = include_str!("../../../docs/which-provider.md")]
struct WhichProvider;

/// And that in the page about executors.
#[cfg(all(doctest, feature = "engine"))]
#[doc = include_str!("../../../docs/executors.md")]
struct Executors;

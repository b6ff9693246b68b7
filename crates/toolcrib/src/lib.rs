//! Toolcrib is the tool layer for LLM agents. At every step it decides what a model may see, bounds
//! what a call may do, and cleans what comes back.
//!
//! By default this crate is the vocabulary and the [`Engine`]: all that a loop of your own needs.
//!
//! | feature | adds |
//! |---|---|
//! | `agent` | [`agent`]: a loop with history, wrap-up and events |
//! | `models` | [`models`]: the scripted model |
//! | `sql` | [`scope`] and [`tools`]: databases as handles, SQL tools over them |
//! | `project` | [`project`]: project folders, `toolcrib.toml` and skills |
//! | `full` | all of these |

#[cfg(feature = "agent")]
pub use toolcrib_agent as agent;
pub use toolcrib_core::*;
pub use toolcrib_engine::*;
#[cfg(feature = "models")]
pub use toolcrib_models as models;
#[cfg(feature = "project")]
pub use toolcrib_project as project;
#[cfg(feature = "sql")]
pub use toolcrib_scope as scope;
#[cfg(feature = "sql")]
pub use toolcrib_tools as tools;

/// The code in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

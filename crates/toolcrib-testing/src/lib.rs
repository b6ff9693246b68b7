//! Test utilities for agents, tools and providers, without a key, a network or a wait.
//!
//! | for | use |
//! |---|---|
//! | a scripted model | [`model()`], [`Answer`], [`call()`] |
//! | a model that misbehaves | [`obedient()`], [`gullible()`], [`hallucinating()`], [`looping()`], [`slow()`], [`stalled()`], [`failing()`] |
//! | a tool that records its calls | [`tool()`] |
//! | a source that fails | [`faulty()`], [`Fault`] |
//! | events and conversations | [`EventRecorder`], [`assert_replayable()`] |
//! | time | [`paused()`], [`in_time()`] |
//! | contract checks | [`check_provider()`], [`check_tool()`], [`assert_reducer()`], [`Clause`]; of stores: [`stores`] |
//!
//! ```
//! use serde_json::json;
//! use toolcrib_agent::{Agent, RunOptions};
//! use toolcrib_testing::{EventRecorder, call, model, paused, tool};
//!
//! let orders = tool("find_order").says("order 1042 is on its way");
//! let model = model()
//!     .then(call("find_order", json!({ "order": 1042 })))
//!     .then("It is on its way.");
//! let agent = Agent::builder().model(model.clone()).tool(orders.tool()).build()?;
//! let seen = EventRecorder::attach(agent.engine().events());
//!
//! let outcome = paused(agent.run("Where is order 1042?", RunOptions::default()));
//!
//! assert_eq!(outcome.answer.as_deref(), Some("It is on its way."));
//! assert_eq!(orders.calls(), [json!({ "order": 1042 })]);
//! model.assert_used_up();
//! seen.assert_order(["agent.turn_start", "tool.start", "tool.end", "agent.turn_end"]);
//! seen.assert_none("tools.discovery_failed");
//! # Ok::<(), toolcrib_agent::AgentError>(())
//! ```
//!
//! Functions named `assert_…`, and those with a section *Panics*, fail the test by a panic.
//! Independent of any test runner.
//!
//! # Layers
//!
//! - `contract`: contract checks for implementations.
//! - `stores`: contract checks for stores.
//! - `faulty`: a provider that fails on purpose.
//! - `history`: checks of conversations.
//! - `model`: models for tests.
//! - `random`: reproducible pseudo-random numbers.
//! - `recorder`: a record of events for tests.
//! - `clock`: time in tests.
//! - `tool`: a tool that records its calls.
//! - `fail`: failures of assertions.
//! - `count`: the number of things in progress.

mod clock;
mod contract;
mod count;
mod fail;
mod faulty;
mod history;
mod model;
mod random;
mod recorder;
pub mod stores;
mod tool;

pub use self::{
    clock::{in_time, paused},
    contract::{
        CheckReport, Clause, ProviderCheck, ToolCheck, Violation, Violations, assert_reducer,
        check_provider, check_tool,
    },
    faulty::{Fault, FaultyProvider, faulty},
    history::assert_replayable,
    model::{
        Answer, TestModel, call, failing, gullible, hallucinating, looping, model, obedient,
        results, slow, stalled,
    },
    recorder::EventRecorder,
    tool::{TestTool, tool},
};

//! What the tests share.

use std::panic::{AssertUnwindSafe, catch_unwind};

use toolcrib_agent::{Agent, AgentBuilder};
use toolcrib_core::{Message, ToolResult};
use toolcrib_engine::{Engine, EngineBuilder, Redactor};
use toolcrib_testing::TestModel;

/// What an assertion of the kit says when it fails.
pub(crate) fn failure<T>(assertion: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assertion)).err().expect("it did not fail");
    panic.downcast_ref::<String>().expect("a text").clone()
}

/// An engine that knows no secrets of the machine it is tested on.
pub(crate) fn engine() -> EngineBuilder {
    Engine::builder().redactor(Redactor::default())
}

pub(crate) fn agent(model: &TestModel) -> AgentBuilder {
    Agent::builder().model(model.clone()).engine(|engine| engine.redactor(Redactor::default()))
}

/// What a call gave back, as it stands in a history.
pub(crate) fn result(id: &str, name: &str, text: &str) -> Message {
    let mut result = ToolResult::new(id.into(), name.into());
    result.text = text.into();
    result.message()
}

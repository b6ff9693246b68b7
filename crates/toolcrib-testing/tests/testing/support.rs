//! Shared helpers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use toolcrib_agent::{Agent, AgentBuilder};
use toolcrib_core::{Message, ToolResult};
use toolcrib_engine::{Engine, EngineBuilder, Redactor};
use toolcrib_testing::TestModel;

/// The message of a failed assertion of the kit.
pub(crate) fn failure<T>(assertion: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assertion)).err().expect("it did not fail");
    panic.downcast_ref::<String>().expect("a text").clone()
}

/// An engine without the secrets of the machine.
pub(crate) fn engine() -> EngineBuilder {
    Engine::builder().redactor(Redactor::default())
}

pub(crate) fn agent(model: &TestModel) -> AgentBuilder {
    Agent::builder().model(model.clone()).engine(|engine| engine.redactor(Redactor::default()))
}

/// A result as it appears in a conversation.
pub(crate) fn result(id: &str, name: &str, text: &str) -> Message {
    let mut result = ToolResult::new(id.into(), name.into());
    result.text = text.into();
    result.message()
}

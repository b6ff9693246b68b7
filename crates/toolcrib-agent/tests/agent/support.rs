//! Shared helpers besides the test kit: answers with a price, small tools, skills.

use serde_json::{Value, json};
use toolcrib_agent::{Agent, AgentBuilder, RunOutcome};
use toolcrib_core::{SkillId, Tool, ToolBuilder, ToolCall, ToolContext, ToolName, Usage};
use toolcrib_engine::{Redactor, Skill, Skills};
use toolcrib_testing::{Answer, EventRecorder, TestModel};

pub(crate) const USAGE: Usage = Usage {
    input_tokens: 10,
    cached_input_tokens: 4,
    cache_write_tokens: 0,
    output_tokens: 2,
    cost_usd: Some(0.25),
};

/// A text with a cost.
pub(crate) fn says(text: &str) -> Answer {
    Answer::text(text).usage(USAGE)
}

/// Calls with explicit ids, and some text.
pub(crate) fn calls<const N: usize>(calls: [ToolCall; N]) -> Answer {
    says("One moment.").and_calls(calls).keep_ids()
}

pub(crate) fn call(id: &str, tool: &str, args: Value) -> ToolCall {
    ToolCall::new(id, tool, args)
}

/// An agent without the secrets of the machine.
pub(crate) fn agent(model: &TestModel) -> AgentBuilder {
    Agent::builder().model(model.clone()).engine(|engine| engine.redactor(Redactor::default()))
}

pub(crate) fn builder(name: &str) -> ToolBuilder {
    Tool::builder(name).description("A tool of the tests.").input_schema(json!({"type": "object"}))
}

pub(crate) fn tool(name: &str) -> Tool {
    builder(name).handler(|_: Value, _: ToolContext| async { "ran" }).unwrap()
}

/// A tool that never returns.
pub(crate) fn endless(builder: ToolBuilder) -> Tool {
    builder.handler(|_: Value, _: ToolContext| std::future::pending::<&str>()).unwrap()
}

pub(crate) fn skill_id(id: &str) -> SkillId {
    SkillId::new(id).unwrap()
}

pub(crate) fn skills<const N: usize>(skills: [(&str, &[&str]); N]) -> Skills {
    let skills = skills.map(|(id, tools)| {
        Skill::new(skill_id(id), format!("About {id}."), format!("How to do {id}."))
            .tools(tools.iter().map(|name| ToolName::new(*name).unwrap()))
    });
    Skills::new(skills.into()).unwrap()
}

/// Asserts that the run ended with its last event and its stop reason, and that every start had its
/// end.
pub(crate) fn assert_ended(seen: &EventRecorder, outcome: &RunOutcome) {
    seen.assert_complete();
    let end = seen.json_of("agent.turn_end").remove(0);
    assert_eq!(end["stopped"], outcome.end_reason.as_str());
    assert_eq!(end["iterations"], outcome.iterations);
}

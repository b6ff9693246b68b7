//! A model that hallucinates.

use serde_json::{Value, json};
use toolcrib_core::{ModelRequest, Tool, ToolCall};

use super::{
    TestModel,
    answer::Answer,
    model,
    request::{answers_so_far, call, may_call},
};
use crate::random::Random;

/// A model that makes every mistake about tools that a model can make, all of them in each
/// response, and never finishes by itself. If calls are not allowed, it responds `I am sure of it.`
///
/// Each response contains calls
///
/// - to names that are not offered: invented, empty, of 200 characters, with a NUL;
/// - to names that look like an offered one: in other letter case, with a letter of another script,
///   with white space around it, with a prefix such as `functions.`;
/// - to an offered tool with arguments that have the wrong types, are not an object, contain
///   unknown properties, are broken JSON, or nest very deep;
/// - without an id, and two with the same id.
///
/// Order and details depend only on the seed and on the number of earlier responses: a failed test
/// can be repeated. If no tool is offered, an invented name is used as the offered tool.
///
/// ```
/// use toolcrib_agent::{Agent, RunOptions, EndReason};
/// use toolcrib_testing::{assert_replayable, hallucinating, paused, tool};
///
/// let refund = tool("refund");
/// let agent = Agent::builder().model(hallucinating(7)).tool(refund.tool()).build()?;
/// let outcome = paused(agent.run("Refund order 7.", RunOptions::default()));
/// assert_eq!(outcome.end_reason, EndReason::MaxIterations);
/// assert_replayable(&outcome.messages);
/// # Ok::<(), toolcrib_agent::AgentError>(())
/// ```
pub fn hallucinating(seed: u64) -> TestModel {
    model().named("test:hallucinating").always_with(move |request| {
        if !may_call(request) {
            return Answer::text("I am sure of it.");
        }
        let answers = u64::try_from(answers_so_far(request)).unwrap_or_default();
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(answers));
        Answer::calls(calls(&mut random, request)).keep_ids()
    })
}

fn calls(random: &mut Random, request: &ModelRequest) -> Vec<ToolCall> {
    let tools = request.menu.tools();
    let mut calls: Vec<ToolCall> = names(random, tools)
        .into_iter()
        .chain(["".to_owned(), "n".repeat(200), "a\0b".to_owned()])
        .map(|name| call(&name, json!({})))
        .collect();
    calls.extend(arguments(random, tools));
    random.shuffle(&mut calls);
    for (call, number) in calls.iter_mut().zip(1..) {
        call.id = format!("made_up_{number}").into();
    }
    let without_id = ToolCall::new("", offered(random, tools), json!({}));
    let twice = ToolCall::new("made_up_1", offered(random, tools), json!({}));
    calls.extend([without_id, twice]);
    calls
}

/// The name of an offered tool.
fn offered(random: &mut Random, tools: &[Tool]) -> String {
    let name = random.pick(tools).map(|tool| tool.name().to_string());
    name.unwrap_or_else(|| "search_everything".to_owned())
}

fn names(random: &mut Random, tools: &[Tool]) -> Vec<String> {
    let made_up = ["search_everything", "browser", "python", "final_answer", "multi_tool_use"];
    let made_up = random.pick(&made_up).copied().unwrap_or_default().to_owned();
    let around = [(" ", ""), ("", " "), ("", "\n"), ("\u{200b}", ""), ("", "()")];
    let (before, behind) = random.pick(&around).copied().unwrap_or_default();
    let prefixes = ["functions.", "default_api:", "tools/", "mcp__local__"];
    let prefix = random.pick(&prefixes).copied().unwrap_or_default();
    let (upper, other, padded, prefixed) = (
        offered(random, tools),
        offered(random, tools),
        offered(random, tools),
        offered(random, tools),
    );
    [
        made_up,
        other_case(&upper),
        other_script(&other),
        format!("{before}{padded}{behind}"),
        format!("{prefix}{prefixed}"),
    ]
    .into_iter()
    // A name that happens to be offered would not be a hallucination.
    .map(|name| if tools.iter().any(|tool| *tool.name() == *name) { name + "." } else { name })
    .collect()
}

fn other_case(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    if upper == name { name.to_ascii_lowercase() } else { upper }
}

/// The name with one letter replaced by a look-alike.
fn other_script(name: &str) -> String {
    let look_alike = |c| match c {
        'a' => Some('а'),
        'c' => Some('с'),
        'e' => Some('е'),
        'o' => Some('о'),
        'p' => Some('р'),
        's' => Some('ѕ'),
        'x' => Some('х'),
        'y' => Some('у'),
        '_' => Some('＿'),
        _ => None,
    };
    let found = name.char_indices().find_map(|(at, c)| Some((at, c, look_alike(c)?)));
    match found {
        Some((at, c, instead)) => {
            let mut name = name.to_owned();
            name.replace_range(at..at + c.len_utf8(), &instead.to_string());
            name
        }
        None => format!("{name}\u{200d}"),
    }
}

fn arguments(random: &mut Random, tools: &[Tool]) -> Vec<ToolCall> {
    let no_object = [json!([]), json!("order 7"), json!(null), json!(7), json!(true)];
    let no_object = random.pick(&no_object).cloned().unwrap_or_default();
    let broken = ["{\"order\": 7", "{order: }", "{'a': 'b", "", "NaN", "{\"a\":1}}", "```json\n{}"];
    let broken = random.pick(&broken).copied().unwrap_or_default();
    let deep = "[".repeat(5_000 + random.below(5_000));
    let wrong = random.pick(tools).map_or_else(
        || call("search_everything", json!({ "query": {} })),
        |tool| call(tool.name(), wrong_types(tool)),
    );
    vec![
        wrong,
        call(&offered(random, tools), no_object),
        call(&offered(random, tools), json!({ "nobody_asked_for": "this", "__proto__": {} })),
        ToolCall::unparsed("", offered(random, tools), broken),
        ToolCall::unparsed("", offered(random, tools), format!("{{\"a\":{deep}")),
    ]
}

/// All properties of a tool's schema, each with a value of a wrong type.
fn wrong_types(tool: &Tool) -> Value {
    let properties = tool.input_schema().get("properties").and_then(Value::as_object);
    let wrong = properties.into_iter().flatten().map(|(name, schema)| {
        let takes_object = schema.get("type").is_some_and(|kind| kind == "object");
        (name.clone(), if takes_object { json!(["wrong"]) } else { json!({ "wrong": true }) })
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use toolcrib_core::ToolName;

    use super::*;

    #[test]
    fn look_alikes_are_no_names_and_differ_from_what_they_look_like() {
        for name in ["refund", "REFUND", "x", "ttt"] {
            assert_ne!(other_script(name), name);
            assert!(ToolName::new(other_script(name)).is_err());
            assert_ne!(other_case(name), name);
        }
    }
}

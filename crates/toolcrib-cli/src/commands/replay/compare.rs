//! The first difference between a run and its replay.

use std::{collections::VecDeque, sync::Arc};

use serde_json::Value;
use toolcrib_agent::RunOutcome;
use toolcrib_core::{Arguments, ErrorCode, ToolChoice, ToolName, ToolResult, unfence};

use super::sides::RecordedTools;
use crate::{
    output::{
        replay::{Difference, DifferentCall},
        written,
    },
    trace::{OK, Trace, TracedCall, TracedIteration},
};

/// A menu of the replay: iteration, fingerprint, tools.
pub(super) type ReplayedMenu = (Option<u32>, String, Vec<String>);

/// The skills that the caller of the run had activated.
pub(super) fn first_skills(trace: &Trace) -> Vec<String> {
    let activated = trace.notes.iter().filter(|note| {
        *note.name == *"skill.activated" && note.fields.get("by") == Some(&Value::from("caller"))
    });
    activated.filter_map(|note| note.fields.get("skill")?.as_str().map(str::to_owned)).collect()
}

/// The tool choice of each iteration.
pub(super) fn tool_choices(trace: &Trace) -> Vec<ToolChoice> {
    let numbered = trace.iterations.iter().filter(|iteration| iteration.number.is_some());
    let choice = |iteration: &TracedIteration| {
        let choice = iteration.requests.last().map(|request| &request.tool_choice);
        match choice {
            Some(Value::String(word)) if word == "none" => ToolChoice::None,
            Some(Value::String(word)) if word == "required" => ToolChoice::Required,
            Some(Value::Object(tool)) => {
                let name = tool.get("tool").and_then(Value::as_str).map(ToolName::new);
                name.and_then(Result::ok).map_or(ToolChoice::Auto, ToolChoice::Tool)
            }
            _ => ToolChoice::Auto,
        }
    };
    numbered.map(choice).collect()
}

/// The first difference; `None` if there is none.
pub(super) fn first_difference(
    trace: &Trace,
    outcome: &RunOutcome,
    menus: &[ReplayedMenu],
    tools: &RecordedTools,
) -> Option<Difference> {
    // Calls of one message begin in any order: they are matched by id, with another model by place.
    let mut actual: VecDeque<_> = outcome.tool_calls.iter().collect();
    for iteration in &trace.iterations {
        if let Some(difference) = menu(iteration, menus) {
            return Some(difference);
        }
        for (number, expected) in (1..).zip(&iteration.calls) {
            let call = || DifferentCall {
                tool: expected.tool.clone(),
                call_id: expected.call_id.to_string(),
                number,
            };
            let same = actual.iter().position(|actual| *actual.call_id == *expected.call_id);
            let found = match actual.remove(same.unwrap_or(0)) {
                None => Some(("calls", shown(expected), no_call(outcome))),
                Some(actual) => self::call(expected, actual, tools),
            };
            if let Some((part, expected, actual)) = found {
                let iteration = iteration.number;
                return Some(Difference { iteration, call: Some(call()), part, expected, actual });
            }
        }
    }
    let whole = |part, expected: &str, actual: &str| Difference {
        iteration: None,
        call: None,
        part,
        expected: expected.to_owned(),
        actual: actual.to_owned(),
    };
    if is_open(trace) {
        return None;
    }
    if let Some(more) = actual.front() {
        return Some(whole("calls", "no further call", &made(more)));
    }
    let stopped = outcome.end_reason.as_str();
    if stopped != trace.stopped() {
        let error = outcome.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        return Some(whole("end", trace.stopped(), &format!("{stopped}{error}")));
    }
    let (expected, actual) = (trace.answer.as_deref(), outcome.answer.as_deref());
    let (expected, actual) = (expected.unwrap_or_default(), actual.unwrap_or_default());
    (expected != actual).then(|| whole("answer", expected, actual))
}

/// Whether the run ended before its model did: it was cancelled or killed, or waits. Its replay is
/// compared up to that point.
fn is_open(trace: &Trace) -> bool {
    matches!(
        trace.stopped(),
        "running" | "awaiting_approval" | "interrupted" | "cancelled" | "timed_out"
    )
}

fn menu(iteration: &TracedIteration, menus: &[ReplayedMenu]) -> Option<Difference> {
    let expected = iteration.menu.as_ref()?;
    let difference = |expected, actual| {
        let iteration = iteration.number;
        Some(Difference { iteration, call: None, part: "menu", expected, actual })
    };
    let Some((_, fingerprint, tools)) =
        menus.iter().find(|(number, ..)| *number == iteration.number)
    else {
        return difference(names(&expected.tools), "the replay ended before".to_owned());
    };
    if *fingerprint == expected.fingerprint {
        return None;
    }
    let lacks = |these: &[String], others: &[String]| {
        let missing = these.iter().filter(|name| !others.contains(name)).cloned();
        missing.collect::<Vec<_>>()
    };
    let (removed, added) = (lacks(&expected.tools, tools), lacks(tools, &expected.tools));
    if removed.is_empty() && added.is_empty() {
        return difference(
            "the same definitions".to_owned(),
            "the definition or the order of a tool changed".to_owned(),
        );
    }
    difference(
        format!("also {}", if removed.is_empty() { "nothing".to_owned() } else { names(&removed) }),
        format!("also {}", if added.is_empty() { "nothing".to_owned() } else { names(&added) }),
    )
}

fn names(tools: &[String]) -> String {
    tools.join(", ")
}

/// The part of a call that differs, and both.
fn call(
    expected: &TracedCall,
    actual: &ToolResult,
    tools: &RecordedTools,
) -> Option<(&'static str, String, String)> {
    if *expected.tool != *actual.name {
        return Some(("calls", shown(expected), made(actual)));
    }
    let arguments = expected.arguments.as_ref().map(|arguments| match arguments {
        Arguments::Json(json) => json.clone(),
        Arguments::Text(text) => serde_json::from_str(text).unwrap_or(Value::String(text.clone())),
    });
    // `call_tool` has the arguments of its target within its own.
    if expected.called.is_none()
        && let Some(arguments) = arguments
        && arguments != actual.args
        && expected.ran_with.as_ref() != Some(&actual.args)
    {
        return Some(("arguments", arguments.to_string(), actual.args.to_string()));
    }
    if expected.end.is_some() {
        let last = expected.policy.last().map_or("allow", |decision| &*decision.effect);
        let now = tools.decision(&actual.call_id).as_str();
        if last != now {
            return Some(("policy", last.to_owned(), now.to_owned()));
        }
    }
    if tools.has_answered(&actual.call_id) {
        return None;
    }
    let outcome = expected.outcome.as_deref()?;
    let code = actual.code.map_or(OK, ErrorCode::as_str);
    if outcome != code {
        let cause = actual.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
        return Some(("outcome", outcome.to_owned(), format!("{code}{cause}")));
    }
    let expected = expected.result.as_ref().map(without_fence).unwrap_or_default();
    let actual = without_fence(&actual.text);
    (expected != actual).then_some(("result", expected, actual))
}

/// A text without its fence, whose nonce is always another.
fn without_fence(text: &Arc<str>) -> String {
    let (inside, after) = unfence(text);
    format!("{inside}\n{after}").trim_end().to_owned()
}

fn shown(call: &TracedCall) -> String {
    let arguments = call.arguments.as_ref().map(written);
    format!("{} {}", call.tool, arguments.unwrap_or_default())
}

fn made(call: &ToolResult) -> String {
    format!("{} {}", call.name, call.args)
}

fn no_call(outcome: &RunOutcome) -> String {
    let error = outcome.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    format!("no call; the replay ended as {}{error}", outcome.end_reason)
}

//! The changes, cost and state folder of a run.

use std::fmt::Write as _;

use toolcrib_agent::RunOutcome;
use toolcrib_core::{ErrorCode, Tool, ToolResult};
use toolcrib_project::Project;

use super::{
    print::note,
    text::{DIM, WARN, arguments, count, duration, grouped, safe, shown},
    trace::{cached, money},
};

/// Prints the summary to standard error. `remote` contains the tools of MCP servers.
pub(crate) fn summary(outcome: &RunOutcome, project: &Project, remote: &[Tool]) {
    let effects = Effects::of(&outcome.tool_calls, |name| writes(name, project, remote));
    note!("");
    note!("{DIM}changed{DIM:#}  {}", effects.changed());
    for call in &effects.unknown {
        note!("{WARN}unknown{WARN:#}  {call}: check the effect before a retry");
    }
    let chars = outcome.result_chars();
    if chars.read < chars.produced {
        let (read, produced) = (grouped(chars.read), grouped(chars.produced));
        note!("{DIM}read{DIM:#}     {read} of {produced} characters that tools returned");
    }
    let unread: usize = outcome.menus.iter().map(|menu| menu.deferred_chars).sum();
    if unread > 0 {
        let most = outcome.menus.iter().map(|menu| menu.deferred_count).max().unwrap_or_default();
        let requests = outcome.menus.iter().filter(|menu| menu.deferred_count > 0).count();
        note!(
            "{DIM}unread{DIM:#}   {} characters: the definitions of {} in {}",
            grouped(unread as u64),
            count(most, "deferred tool"),
            count(requests, "request")
        );
    }
    note!("{DIM}took{DIM:#}     {}", took(outcome));
    note!("{DIM}state{DIM:#}    {}", shown(project.state()));
}

/// Prints the calls that a dry run did not make to standard error.
pub(crate) fn plan(calls: &[ToolResult]) {
    let planned: Vec<_> = calls.iter().filter(|call| call.plan.is_some()).collect();
    note!("");
    match planned.len() {
        0 => note!("{DIM}plan{DIM:#}     no calls that have an effect"),
        calls => note!("{DIM}plan{DIM:#}     {} would be made:", count(calls, "call")),
    }
    for call in planned {
        note!("  {} {}", safe(&call.name), arguments(&call.args));
        needs_approval(call);
    }
}

/// Prints the rule that requires approval of a planned call, if there is one, to standard error.
pub(crate) fn needs_approval(call: &ToolResult) {
    let Some(plan) = &call.plan else { return };
    if let Some(rule) = &plan.approval_rule {
        let reason = plan.approval_reason.as_ref().map(|reason| format!(": {}", safe(reason)));
        let reason = reason.unwrap_or_default();
        note!("    {WARN}needs approval{WARN:#} by {}{reason}", safe(rule));
    }
}

/// Prints the changes and the cost of a turn of a chat to standard error.
pub(crate) fn turn_summary(outcome: &RunOutcome, project: &Project, remote: &[Tool]) {
    let effects = Effects::of(&outcome.tool_calls, |name| writes(name, project, remote));
    note!("");
    if !effects.changed.is_empty() {
        note!("{DIM}changed{DIM:#}  {}", effects.changed());
    }
    for call in &effects.unknown {
        note!("{WARN}unknown{WARN:#}  {call}: check the effect before a retry");
    }
    note!("{DIM}{}{DIM:#}", took(outcome));
}

/// Whether a tool may write.
fn writes(name: &str, project: &Project, remote: &[Tool]) -> bool {
    let tool = project.tools().iter().chain(remote).find(|tool| *tool.name() == *name);
    tool.is_some_and(|tool| !tool.annotations().read_only)
}

/// Prints to standard error how a recording is replayed, if there is one.
pub(crate) fn recorded(play_back: Option<&str>) {
    match play_back {
        Some(play_back) => note!("{DIM}recorded{DIM:#} {}", safe(play_back)),
        None => note!("{WARN}recorded{WARN:#} nothing: the model returned no response"),
    }
}

/// The effects of a run's calls, each as the call that had it or may have had it.
#[derive(Debug, Default, PartialEq)]
struct Effects {
    changed: Vec<String>,
    unknown: Vec<String>,
}

impl Effects {
    fn of(calls: &[ToolResult], writes: impl Fn(&str) -> bool) -> Self {
        let mut effects = Self::default();
        let made = calls.iter().filter(|result| result.plan.is_none());
        for result in made.filter(|result| writes(&result.name)) {
            let call = format!("{} {}", result.name, arguments(&result.args));
            if result.is_ok() {
                let rows =
                    result.structured.as_ref().and_then(|data| data.get("changed")?.as_u64());
                match rows {
                    Some(0) => {}
                    Some(rows) => {
                        let rows = count(rows, "row");
                        effects.changed.push(format!("{call} ({rows})"));
                    }
                    None => effects.changed.push(call),
                }
            } else if result.abandoned || result.code == Some(ErrorCode::OutcomeUnknown) {
                effects.unknown.push(call);
            }
        }
        effects
    }

    fn changed(&self) -> String {
        match (self.changed.as_slice(), self.unknown.as_slice()) {
            ([], []) => "nothing".to_owned(),
            ([], _) => "nothing for certain".to_owned(),
            (changed, _) => changed.join("; "),
        }
    }
}

fn took(outcome: &RunOutcome) -> String {
    let usage = outcome.usage;
    let iterations = count(outcome.iterations, "iteration");
    let cached = cached(&usage);
    let mut took = format!(
        "{iterations} in {}, {} tokens in{cached}, {} out",
        duration(outcome.duration),
        usage.input_tokens,
        usage.output_tokens
    );
    if let Some(cost) = usage.cost_usd.filter(|cost| *cost > 0.0) {
        let _ = write!(took, ", {}", money(Some(cost)));
    }
    took
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(name: &str, change: impl FnOnce(&mut ToolResult)) -> ToolResult {
        let mut result = ToolResult::new("c".into(), name.into());
        result.args = json!({"id": 1});
        change(&mut result);
        result
    }

    #[test]
    fn an_effect_is_there_or_not_or_unknown() {
        let calls = [
            call("write", |result| result.structured = Some(json!({"changed": 2}))),
            call("write", |result| result.structured = Some(json!({"changed": 0}))),
            call("send", |_| {}),
            call("read", |_| {}),
            call("write", |result| result.code = Some(ErrorCode::Denied)),
            call("late", |result| result.code = Some(ErrorCode::OutcomeUnknown)),
            call("left", |result| {
                result.code = Some(ErrorCode::Timeout);
                result.abandoned = true;
            }),
            call("read", |result| result.abandoned = true),
        ];
        let effects = Effects::of(&calls, |name| name != "read");
        assert_eq!(effects.changed(), r#"write {"id":1} (2 rows); send {"id":1}"#);
        assert_eq!(effects.unknown, [r#"late {"id":1}"#, r#"left {"id":1}"#]);

        let changed = |calls| Effects::of(calls, |name| name != "read").changed();
        assert_eq!(changed(&calls[3..5]), "nothing");
        assert_eq!(changed(&calls[3..6]), "nothing for certain");
    }
}

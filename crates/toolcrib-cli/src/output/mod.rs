//! What is printed: the result on standard output, everything else on standard error. Colours
//! appear only on a terminal.

mod json;
mod narrator;
mod text;

use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

use serde::Serialize;
use toolcrib_agent::RunOutcome;
use toolcrib_core::{ToolName, ToolResult};
use toolcrib_engine::{Iteration, WithheldTool};
use toolcrib_project::{Diagnostic, Diagnostics, Project, Severity};

use self::text::{BAD, DIM, GOOD, STRONG, WARN, arguments, count, duration, one_line, safe};
pub(crate) use self::{
    json::{CallJson, CheckJson, InitJson, MenuJson, RunJson},
    narrator::Narrator,
};

/// Prints to standard output. Whoever closed it wants no more: that is no failure.
macro_rules! say {
    ($($arg:tt)*) => {{ let _ = writeln!(anstream::stdout(), $($arg)*); }};
}

/// Prints to standard error.
macro_rules! note {
    ($($arg:tt)*) => {{ let _ = writeln!(anstream::stderr(), $($arg)*); }};
}
pub(crate) use note;

/// One JSON object.
pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => {
            let _ = writeln!(std::io::stdout(), "{text}");
        }
        Err(error) => complain(&format!("the result cannot be written as JSON: {error}")),
    }
}

/// Says what is wrong.
pub(crate) fn complain(message: &str) {
    note!("{BAD}error{BAD:#}: {}", safe(message));
}

/// Prints problems of project files, each with its place.
pub(crate) fn diagnostics(diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        one_diagnostic(diagnostic);
    }
    let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    note!("{}", count(errors, "error"));
}

/// Prints what is probably not as meant.
pub(crate) fn warnings(diagnostics: &Diagnostics) {
    diagnostics.warnings().for_each(one_diagnostic);
}

fn one_diagnostic(diagnostic: &Diagnostic) {
    let Diagnostic { file, line, column, message, .. } = diagnostic;
    let (style, word) = match diagnostic.severity {
        Severity::Error => (BAD, "error"),
        Severity::Warning => (WARN, "warning"),
    };
    note!("{STRONG}{file}:{line}:{column}{STRONG:#}: {style}{word}{style:#}: {}", safe(message));
    if let Some(help) = &diagnostic.help {
        note!("  {GOOD}help{GOOD:#}: {}", safe(help));
    }
}

/// The answer of a run, or why there is none.
pub(crate) fn answer(outcome: &RunOutcome) {
    if let Some(answer) = &outcome.answer {
        say!("{}", safe(answer));
    }
    if let Some(error) = &outcome.error {
        complain(&error.message);
    } else if outcome.answer.is_none() {
        complain(outcome.stopped.as_str());
    }
}

/// What a run changed, what it took, and where its state lies.
pub(crate) fn summary(outcome: &RunOutcome, project: &Project) {
    let writes = outcome.tool_calls.iter().filter(|result| {
        let tool = project.tools().iter().find(|tool| *tool.name() == *result.name);
        result.is_ok() && tool.is_some_and(|tool| !tool.annotations().read_only)
    });
    let mut changed = Vec::new();
    for result in writes {
        let rows = result.structured.as_ref().and_then(|data| data.get("changed")?.as_u64());
        match rows {
            Some(0) => {}
            Some(rows) => {
                let rows = count(usize::try_from(rows).unwrap_or(usize::MAX), "row");
                changed.push(format!("{} {} ({rows})", result.name, arguments(&result.args)));
            }
            None => changed.push(format!("{} {}", result.name, arguments(&result.args))),
        }
    }
    let changed = if changed.is_empty() { "nothing".to_owned() } else { changed.join("; ") };
    let usage = outcome.usage;
    let steps = count(usize::try_from(outcome.iterations).unwrap_or(usize::MAX), "step");
    let mut took = format!(
        "{steps} in {}, {} tokens in, {} out",
        duration(outcome.duration),
        usage.input_tokens,
        usage.output_tokens
    );
    if usage.cost_usd > 0.0 {
        let _ = write!(took, ", ${:.4}", usage.cost_usd);
    }
    note!("");
    note!("{DIM}changed{DIM:#}  {changed}");
    note!("{DIM}took{DIM:#}     {took}");
    note!("{DIM}state{DIM:#}    {}", project.state().display());
}

/// What the model would see.
pub(crate) fn menu(iteration: &Iteration<'_>, why: bool) {
    let menu = iteration.menu();
    say!("{STRONG}offered{STRONG:#} ({}, {} characters)", count(menu.len(), "tool"), menu.chars());
    for tool in menu.tools() {
        let description = one_line(tool.description(), 72);
        say!("  {GOOD}{}{GOOD:#}  {DIM}{description}{DIM:#}", tool.name());
    }
    let withheld = iteration.withheld();
    say!("{STRONG}withheld{STRONG:#} ({})", count(withheld.len(), "tool"));
    if why {
        for tool in withheld.explain() {
            say!(
                "  {WARN}{}{WARN:#}  {DIM}by {}:{DIM:#} {}",
                tool.name,
                tool.by,
                safe(&tool.reason)
            );
        }
    } else if !withheld.is_empty() {
        let names: Vec<_> = withheld.names().map(ToolName::as_str).collect();
        say!("  {DIM}{}{DIM:#}", names.join(", "));
        note!("{DIM}`--why` says why, and what would have to change{DIM:#}");
    }
    say!("{STRONG}fingerprint{STRONG:#} {}", menu.fingerprint());
}

/// What a call came to, and for a tool that is known and not offered, why.
pub(crate) fn call(result: &ToolResult, withheld: Option<&WithheldTool>, verbose: bool) {
    if result.is_ok() {
        say!("{}", safe(&result.value));
    } else {
        let code = result.code.map_or("", |code| code.as_str());
        complain(&format!("{code}: {}", result.value));
        if let Some(withheld) = withheld {
            note!("  {DIM}withheld by {}{DIM:#}: {}", withheld.by, safe(&withheld.reason));
        } else if let Some(cause) = &result.cause {
            note!("  {DIM}cause{DIM:#}: {}", safe(cause));
        }
    }
    if verbose {
        let took = duration(result.duration);
        note!("{DIM}{} {} in {took}{DIM:#}", result.name, arguments(&result.args));
    }
}

/// What a sound project holds.
pub(crate) fn project(project: &Project, quiet: bool, verbose: bool) {
    let tools = project.tools();
    let chars: usize = tools.iter().map(|tool| tool.rendering().chars().count()).sum();
    say!("{GOOD}ok{GOOD:#} {}", project.name());
    if quiet {
        return;
    }
    let writes = tools.iter().filter(|tool| !tool.annotations().read_only).count();
    say!(
        "  {} ({writes} that write), {chars} characters for the model",
        count(tools.len(), "tool")
    );
    if verbose {
        for tool in tools {
            let set = tool.toolset().unwrap_or("-");
            let kind = if tool.annotations().read_only { "reads" } else { "writes" };
            say!("    {}  {DIM}{set}, {kind}, {}{DIM:#}", tool.name(), tool.origin());
        }
    }
    for skill in project.skills().iter() {
        let names: Vec<_> = skill.tools.iter().map(ToolName::as_str).collect();
        say!("  skill {}: {}", skill.id, names.join(", "));
    }
    let policy = project.policy();
    say!("  {}", count(policy.rules.len(), "policy rule"));
    for database in project.databases() {
        say!("  database {}: {}", database.name(), database.file().display());
    }
    match project.model() {
        Some(model) => say!("  model {}", model.name()),
        None => say!("  no model; `run` needs `--model`"),
    }
}

/// A project that was begun.
pub(crate) fn begun(dir: &Path, written: &[PathBuf], quiet: bool) {
    for path in written {
        say!("{GOOD}made{GOOD:#} {}", path.display());
    }
    if !quiet {
        note!("Try: toolcrib run -p {} \"what do we know about the printer?\"", dir.display());
    }
}

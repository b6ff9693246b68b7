//! Output: the result on standard output, everything else on standard error. Colors appear only on
//! a terminal.

mod acp;
mod approvals;
mod chart;
mod chat;
mod check_server;
mod clients;
mod doctor;
mod explain;
mod find;
mod json;
mod lint;
mod lock;
mod login;
mod mcp;
mod models;
mod narrator;
mod page;
mod print;
mod questions;
pub(crate) mod replay;
mod retries;
mod serve;
mod sessions;
mod skills;
mod streams;
mod summary;
mod terminal;
mod text;
mod tools;
mod trace;
mod trust;
mod usage;
mod warnings;
mod work;

use std::path::{Path, PathBuf};

use serde::Serialize;
use toolcrib_agent::RunOutcome;
use toolcrib_core::{Menu, ModelErrorClass, ToolName, ToolResult, WithheldTool};
use toolcrib_engine::{Iteration, OnFailure};
use toolcrib_project::Project;

pub(crate) use self::{
    acp::{message_update, permission, servers_ignored, stored_updates, tool_kind, update},
    approvals::{
        advisory, approval, approval_asked, approval_json, approvals, approvals_hold,
        approvals_json, decision_json, flags_of_approval, grant_json, revoked, settled, unanswered,
        waiting,
    },
    chat::{ChatStart, chat_begins, chat_ends, chat_help, chat_note, chat_skills, chat_usage},
    check_server::{
        CheckedEra, CheckedSuite, ServerFinding, ServerReport, ServerSeverity, server_report,
    },
    clients::{
        ConfiguredFile, ConfiguredServer, DiscoverJson, InstallJson, client_change, discovered,
        installed, server_entry,
    },
    doctor::{Checkup, DoctorJson, checkup, is_store_fine, store_checkup},
    explain::why,
    find::{ExpectedTool, FindJson, FoundTool, found},
    json::{CallJson, MenuJson, ProblemJson, RunJson, checked},
    lint::{findings, parsed, withheld},
    lock::{LockJson, accepted, lock_changes, pin_changed, pin_new, pinned, pins_unsaved},
    login::{LoginJson, LoginsJson, logged_in, logged_out, login_address, logins},
    mcp::{
        QueriedServer, ServerJson, ServerOffer, ServersJson, log_line, server, servers, unmatched,
        waiting_for,
    },
    models::{ListedModel, ModelState, chosen_model, model_added, models, models_json},
    narrator::Narrator,
    page::{trace_page, usage_page},
    print::note,
    questions::{asked_text, form_asked, question_note, url_asked},
    replay::{ReplayJson, replayed},
    serve::{
        HttpEndpoint, asked, at, calls_not_stored, how_to_start, log_failed, log_recovered,
        not_reached, not_reloaded, reloaded, request, served, served_later, server_state, token,
    },
    sessions::{
        SessionsJson, exported, exported_to, restrictions, session, session_deleted, session_json,
        session_markdown, session_waits, sessions,
    },
    skills::{
        SkillsJson, installed as skill_installed, installed_json, reload_failed, removed, skills,
    },
    streams::{complain, lost, raw, settle},
    summary::{plan, recorded, summary, turn_summary},
    terminal::{ask_line, pause},
    text::{safe, safe_json, shell_word},
    tools::{KnownSource, KnownTool, KnownTools, tools, tools_json, unmatched_excludes},
    trace::{RunsJson, runs, trace, written},
    trust::{TrustJson, all_trusted, changes, kept, notice, powers, trust_removed, trusted},
    usage::{BudgetLine, UsageJson, UsageLine, budget, usage},
    warnings::{diagnostics, warnings},
    work::{
        Follower, claim_failed, json_line, segment_ended, segment_failed, segment_left,
        session_cancelled, submitted, worker_begins,
    },
};
use self::{
    print::say,
    text::{DIM, GOOD, STRONG, WARN, arguments, count, duration, of_plugin, shown, target},
};

/// The names of the vault's secrets, one per line.
pub(crate) fn secrets(names: &[String], is_quiet: bool) {
    if names.is_empty() && !is_quiet {
        note!("no secrets; `toolcrib secret set NAME` stores one");
    }
    for name in names {
        say!("{}", safe(name));
    }
}

/// One JSON object.
pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => streams::print(&safe_json(text)),
        Err(error) => lost("the result as JSON", error.into()),
    }
}

/// Prints the help of a command, with its escape sequences.
pub(crate) fn help(text: &str) {
    terminal::help(text);
}

/// Prints an error of the command line, with its escape sequences.
pub(crate) fn misread(text: &str) {
    note!("{}", text.trim_end());
}

/// Prints that a collector of traces cannot be reached or refuses them.
#[cfg(feature = "otlp")]
pub(crate) fn not_exported(error: &dyn std::fmt::Display) {
    note!(
        "{WARN}warning{WARN:#}: traces cannot be exported, and are dropped: {}; check \
         `OTEL_EXPORTER_OTLP_ENDPOINT`",
        safe(&error.to_string())
    );
}

/// The answer of a run, unless a narrator has shown it, or why there is none.
pub(crate) fn answer(outcome: &RunOutcome, narrator: Option<&Narrator>) {
    if let Some(answer) = &outcome.answer
        && !narrator.is_some_and(|narrator| narrator.shows(answer))
    {
        terminal::markdown(&safe(answer));
    }
    if let Some(error) = &outcome.error {
        complain(&error.message);
        if let Some(ModelErrorClass::Auth | ModelErrorClass::BadRequest) = error.class {
            note!("`toolcrib models` shows which models and keys are accepted");
        }
    } else if outcome.answer.is_none() {
        complain(outcome.end_reason.as_str());
    }
}

/// The tools that the model would see.
///
/// With `verbose`, descriptions are shown in full.
pub(crate) fn menu(iteration: &Iteration, why: bool, verbose: bool) {
    for notice in iteration.notices() {
        let what = match notice.outcome {
            OnFailure::Stale => "could not be listed; its last good listing is offered",
            _ => "could not be listed and is left out",
        };
        note!("{WARN}notice{WARN:#}: {} {what}: {}", safe(&notice.source), safe(&notice.reason));
    }
    let menu = iteration.menu();
    say!("{STRONG}offered{STRONG:#} ({}, {} characters)", count(menu.len(), "tool"), menu.chars());
    for tool in menu.tools() {
        let description = tools::description(tool, verbose);
        say!("  {GOOD}{}{GOOD:#}  {DIM}{description}{DIM:#}", tool.name());
        if why && let Some(why) = iteration.why(tool.name()) {
            explain::in_short(&why);
        }
    }
    let deferred = menu.deferred();
    if !deferred.is_empty() {
        say!("{STRONG}deferred{STRONG:#} ({})", count(deferred.len(), "tool"));
        let names: Vec<_> = deferred.iter().map(|tool| tool.name().as_str()).collect();
        say!("  {DIM}{}{DIM:#}", names.join(", "));
    }
    let withheld = iteration.withheld();
    // An unavailable server is listed as a pattern.
    let away = withheld.names().filter(|name| name.contains('*')).count();
    say!(
        "{STRONG}withheld{STRONG:#} ({}{})",
        count(withheld.len() - away, "tool"),
        text::servers_away(away)
    );
    if why {
        withheld.explanations().for_each(|why| explain::in_menu(&why));
    } else if !withheld.is_empty() {
        let names: Vec<_> = withheld.names().map(safe).collect();
        say!("  {DIM}{}{DIM:#}", names.join(", "));
        note!(
            "{DIM}`--why` lists the reasons, and what would have to change; so does `explain \
             TOOL`{DIM:#}"
        );
    }
    say!("{STRONG}fingerprint{STRONG:#} {}", menu.fingerprint());
}

/// The result of a call, and for a withheld tool, the reason.
pub(crate) fn call(result: &ToolResult, withheld: Option<&WithheldTool>, verbose: bool) {
    if result.is_ok() {
        if !result.value.is_empty() || result.blocks.is_empty() {
            say!("{}", safe(&result.value));
        }
        for block in result.blocks.iter() {
            say!("{}", safe(&block.as_read()));
        }
        summary::needs_approval(result);
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
        note!("{DIM}{} {} in {took}{DIM:#}", safe(&result.name), arguments(&result.args));
    }
}

/// Piped text beside a message that a run did not read.
pub(crate) fn unread_input() {
    note!(
        "{WARN}notice{WARN:#}: the text on standard input was not read; add `--attach -` to attach \
         it to the message"
    );
}

/// How to read the rest of an artifact.
pub(crate) fn read_on(how: &str) {
    note!("  {GOOD}help{GOOD:#}: {}", safe(how));
}

/// The likely intended name for an unknown one, which may be a withheld tool's: not for a model.
pub(crate) fn meant(name: Option<&str>) {
    if let Some(name) = name {
        note!("  {GOOD}help{GOOD:#}: did you mean `{}`?", safe(name));
    }
}

/// The contents of a valid project. The menu has its tools, then those that load its skills.
pub(crate) fn project(project: &Project, menu: &Menu, quiet: bool, verbose: bool) {
    let tools = project.tools();
    say!("{GOOD}ok{GOOD:#} {}", safe(project.name()));
    if quiet {
        return;
    }
    let writes = tools.iter().filter(|tool| !tool.annotations().read_only).count();
    let (servers, hubs) = (project.mcp_servers().len(), project.hubs().len());
    let has_sources = servers + hubs > 0;
    let noun = if has_sources { "declared tool" } else { "tool" };
    let of_skills = menu.tools().iter().skip(tools.len());
    let also: String = of_skills.map(|tool| format!(" and `{}`", tool.name())).collect();
    say!(
        "  {} ({writes} with write access){also}, {} characters for the model",
        count(tools.len(), noun),
        menu.chars()
    );
    if has_sources {
        let sources = [(servers, "MCP server"), (hubs, "hub")];
        let sources = sources.into_iter().filter(|(n, _)| *n > 0);
        let sources: Vec<_> = sources.map(|(n, noun)| count(n, noun)).collect();
        say!(
            "  the tools of {} are not counted: `check` queries no server, `toolcrib tools` does",
            sources.join(" and ")
        );
    }
    for tool in tools.iter().filter(|_| verbose) {
        let set = safe(tool.toolset().unwrap_or("-"));
        let kind = if tool.annotations().read_only { "reads" } else { "writes" };
        let from = safe(&tool.origin_label());
        say!("    {}  {DIM}{set}, {kind}, {from}{DIM:#}", tool.name());
    }
    for skill in project.skills().iter() {
        let names: Vec<_> = skill.tools.iter().map(ToolName::as_str).collect();
        let of = of_plugin(skill.plugin.as_deref());
        let names = if names.is_empty() { "no tools".to_owned() } else { names.join(", ") };
        say!("  skill {}{of}: {names}", skill.id);
    }
    for plugin in project.plugins() {
        let tools = tools.iter().filter(|tool| tool.plugin() == Some(plugin)).count();
        say!("  plugin {plugin}: {}", count(tools, "declared tool"));
    }
    for personality in project.personalities() {
        say!("  personality {}", safe(&personality.id));
    }
    let policy = project.policy();
    say!("  {}", count(policy.rules.len(), "policy rule"));
    if project.approvals().are_needed() {
        advisory(project.approvals().advisory());
    }
    sources(project);
    match project.model() {
        Some(model) => say!("  model {}", safe(model.name())),
        None => say!(
            "  no model is named; `run` uses your default of `models add`, or else the first configured one"
        ),
    }
}

/// The databases and servers of a project.
fn sources(project: &Project) {
    for database in project.databases() {
        say!("  database {}: {}", safe(database.name()), shown(database.file()));
    }
    for server in project.database_servers() {
        say!("  database {}: {}", safe(server.name()), safe(&server.shown()));
    }
    for server in project.mcp_servers() {
        let target = target(project, server).map(|target| format!(": {}", safe(&target)));
        let of = of_plugin(server.plugin());
        say!("  MCP server {}{of}{}", server.name(), target.unwrap_or_default());
    }
    for hub in project.hubs() {
        let of = of_plugin(hub.plugin());
        say!("  hub {}{of}: {}", safe(hub.name()), safe(hub.url()));
    }
}

/// A new project.
pub(crate) fn begun(dir: &Path, written: &[PathBuf], is_from: bool, quiet: bool) {
    for path in written {
        say!("{GOOD}created{GOOD:#} {}", shown(path));
    }
    if !quiet {
        let dir = shell_word(dir);
        let dir = safe(&dir);
        match is_from {
            true => note!("Try: toolcrib menu -p {dir}"),
            false => note!("Try: toolcrib run -p {dir} \"what do we know about the printer?\""),
        }
    }
}

//! The candidates for the values of arguments.

use std::ffi::OsStr;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};
use toolcrib_core::{PinKind, SessionInfo, StoredRun};
use toolcrib_models::Vendor;
use toolcrib_project::{DeclaredHub, Project};

use super::line::Line;
use crate::{host::stored_trace::StoredRuns, output};

type Candidates = Vec<CompletionCandidate>;

/// The candidates for a value.
pub(super) enum Values {
    /// Names, mostly of the project of the line.
    Names(fn(&Line) -> Option<Candidates>),
    /// Paths that begin as the word does.
    Paths(fn(&OsStr) -> Candidates),
}

/// The most sessions and runs among the candidates, the newest first.
const MOST: usize = 50;

/// The commands, the name of the value in help, and the candidates. The first row that fits counts.
const VALUES: [(&str, &str, Values); 19] = [
    ("approvals revoke", "ID", Values::Names(grants)),
    ("approvals show", "ID", Values::Names(approvals)),
    ("approve", "ID", Values::Names(approvals)),
    ("deny", "ID", Values::Names(approvals)),
    ("call", "ARGUMENT", Values::Paths(file_of_at)),
    ("mcp call", "ARGUMENT", Values::Paths(file_of_at)),
    ("mcp call", "TOOL", Values::Names(tools_of_server)),
    ("lock", "TOOL", Values::Names(tools_of_server)),
    ("mcp", "SERVER", Values::Names(servers)),
    ("lock", "SERVER", Values::Names(sources)),
    ("models add", "MODEL", Values::Names(vendors)),
    ("models remove", "VENDOR", Values::Names(vendors)),
    ("", "MESSAGE", Values::Paths(file_of_at)),
    ("", "PERSONALITY", Values::Names(personalities)),
    ("", "RUN", Values::Names(runs)),
    ("", "SESSION", Values::Names(sessions)),
    ("", "SKILL", Values::Names(skills)),
    ("", "TOOL", Values::Names(tools)),
    ("", "TOOLS", Values::Paths(tools_without_project)),
];

/// The commands whose `MODEL` is a model to use, and not one that was used.
const WITH_MODEL: [&str; 5] = ["chat", "replay", "resume", "run", "worker"];

/// The candidates for a value of a command; `None` if there are none, or the kind of value has its own.
pub(super) fn of(command: &str, name: &str) -> Option<&'static Values> {
    if name == "MODEL" && WITH_MODEL.contains(&command) {
        return Some(&Values::Names(models));
    }
    let is_of =
        |row: &str| row.is_empty() || command == row || command.starts_with(&format!("{row} "));
    VALUES.iter().find(|(row, value, _)| *value == name && is_of(row)).map(|(.., values)| values)
}

fn named(names: impl IntoIterator<Item = impl AsRef<str>>) -> Candidates {
    names.into_iter().map(|name| CompletionCandidate::new(name.as_ref())).collect()
}

fn about(name: &str, text: &str) -> CompletionCandidate {
    CompletionCandidate::new(name).help(Some(output::safe(text).into()))
}

fn tools(line: &Line) -> Option<Candidates> {
    Some(named(line.project()?.tools().iter().map(|tool| tool.name().as_str())))
}

fn skills(line: &Line) -> Option<Candidates> {
    Some(named(line.project()?.skills().iter().map(|skill| skill.id.as_str())))
}

fn personalities(line: &Line) -> Option<Candidates> {
    Some(named(line.project()?.personalities().map(|personality| &*personality.id)))
}

fn servers(line: &Line) -> Option<Candidates> {
    Some(named(line.project()?.mcp_servers().iter().map(|server| server.name().as_str())))
}

/// The sources of pinned definitions: servers, hubs, and the documents that were compared.
fn sources(line: &Line) -> Option<Candidates> {
    let project = line.project()?;
    let mut names = named(project.mcp_servers().iter().map(|server| server.name().as_str()));
    names.extend(named(project.hubs().iter().map(DeclaredHub::name)));
    let compared = project.lock().sources();
    names.extend(named(compared.iter().filter_map(|source| source.strip_prefix("openapi:"))));
    Some(names)
}

/// The tools of the server of the line, as they are pinned: it is not started.
fn tools_of_server(line: &Line) -> Option<Candidates> {
    let server = line.value("server")?;
    let pinned = line.project()?.lock().pinned().ok()?;
    let is_of = |source: &str| source.split_once(':').is_some_and(|(_, name)| name == server);
    let of_server = pinned.iter().filter(|pin| pin.kind == PinKind::Tool && is_of(&pin.source));
    Some(named(of_server.map(|pin| &*pin.name)))
}

fn vendors(_: &Line) -> Option<Candidates> {
    Some(named(Vendor::ALL.map(Vendor::as_str)))
}

/// The models of the project, and the vendors.
fn models(line: &Line) -> Option<Candidates> {
    let project = line.project();
    let declared = project.iter().flat_map(Project::models);
    let mut names = named(declared.map(|declared| &*declared.name));
    names.extend(vendors(line)?);
    Some(names)
}

fn sessions(line: &Line) -> Option<Candidates> {
    let store = line.project()?.sessions().open_existing().ok()??;
    let listed = store.list(&line.owner(), MOST).ok()?;
    let candidates = |session: SessionInfo| {
        let names = session.name.into_iter().chain([session.id]);
        names.map(|name| about(&name, &session.title)).collect::<Vec<_>>()
    };
    Some(listed.into_iter().flat_map(candidates).collect())
}

/// The runs, as SESSION/TURN.
fn runs(line: &Line) -> Option<Candidates> {
    let store = StoredRuns::of(&line.project()?, line.is_set("gateway")).open().ok()??;
    let listed = store.runs(&line.owner(), MOST).ok()?;
    let candidate = |run: &StoredRun| {
        let session = run.name.as_ref().unwrap_or(&run.session);
        about(&format!("{session}/{}", run.turn.number), &run.turn.title)
    };
    Some(listed.iter().map(candidate).collect())
}

/// The calls that wait for approval.
fn approvals(line: &Line) -> Option<Candidates> {
    let approvals = line.project()?.approvals().open_existing().ok()??;
    let mut waiting = approvals.list(false).ok()?;
    waiting.retain(|review| &*review.state == "open");
    Some(waiting.iter().map(|review| about(&review.stored.id, &review.stored.call.tool)).collect())
}

fn grants(line: &Line) -> Option<Candidates> {
    let approvals = line.project()?.approvals().open_existing().ok()??;
    let grants = approvals.grants().ok()?;
    Some(grants.iter().map(|grant| about(&grant.id, &grant.tool)).collect())
}

/// The files for a word that begins with `@`.
fn file_of_at(current: &OsStr) -> Candidates {
    let path = current.to_str().and_then(|word| word.strip_prefix('@'));
    // After `@`, no shell replaces `~`.
    let Some(path) = path.filter(|path| !path.starts_with('~')) else { return Vec::new() };
    let found = PathCompleter::file().complete(OsStr::new(path));
    found.into_iter().map(|candidate| candidate.add_prefix("@")).collect()
}

/// The tools of `--with`: kinds, folders and files.
fn tools_without_project(current: &OsStr) -> Candidates {
    let word = current.to_str().unwrap_or_default();
    let mut found = named(["files", "web"].into_iter().filter(|kind| kind.starts_with(word)));
    found.extend(PathCompleter::any().complete(current));
    found
}

//! The tools of a project.

use serde::Serialize;
use toolcrib_core::{Annotations, Glob, ToolName};
use toolcrib_project::Project;

use super::{
    note, say,
    text::{DIM, GOOD, STRONG, WARN, count, one_line, safe},
};
use crate::commands::{KnownSource, KnownTool, KnownTools};

/// Prints them by toolset, in the order in which they come.
pub(crate) fn tools(known: &KnownTools, quiet: bool, verbose: bool) {
    if quiet {
        for known in &known.tools {
            say!("{}", known.tool.name());
        }
        return;
    }
    for source in known.sources.iter().filter(|source| source.facts.failure.is_some()) {
        let name = safe(&source.facts.name);
        let reason = source.facts.failure.as_deref().unwrap_or_default();
        note!("{WARN}notice{WARN:#}: {name} could not be listed: {}", safe(reason));
    }
    let mut last = None;
    for known in &known.tools {
        let toolset = Some(known.tool.toolset());
        if toolset != last {
            say!("{STRONG}{}{STRONG:#}", safe(known.tool.toolset().unwrap_or("no toolset")));
            last = toolset;
        }
        one(known, verbose);
    }
    let remote = known.tools.iter().filter(|known| known.source.is_some()).count();
    say!("{}, {remote} of them remote", count(known.tools.len(), "tool"));
}

/// Says which patterns of `exclude` of personalities match no tool at all. Where a source could not be
/// asked, nothing can be said of it.
pub(crate) fn unmatched_excludes(project: &Project, known: &KnownTools) {
    if known.sources.iter().any(|source| source.facts.failure.is_some() || source.held_back > 0) {
        return;
    }
    for personality in project.personalities() {
        let matches = |glob: &Glob| known.tools.iter().any(|known| glob.speaks_of(&known.tool));
        for glob in personality.exclude.iter().filter(|glob| !matches(glob)) {
            let (id, glob) = (safe(personality.id()), safe(glob.as_str()));
            note!(
                "{WARN}warning{WARN:#}: `{glob}` in `exclude` of personality {id} matches no tool"
            );
        }
    }
}

fn one(known: &KnownTool, verbose: bool) {
    let tool = &known.tool;
    let longest = if verbose { 1_000 } else { 72 };
    say!("  {GOOD}{}{GOOD:#}  {}", tool.name(), one_line(tool.description(), longest),);
    let remote = if known.source.is_some() { ", remote" } else { "" };
    say!(
        "    {DIM}{}, from {}{remote}{DIM:#}",
        effects(tool.annotations()),
        safe(&tool.comes_from())
    );
}

/// What a tool says of its effects, in words.
fn effects(annotations: Annotations) -> String {
    let Annotations { read_only, destructive, idempotent } = annotations;
    let said = [
        Some(if read_only { "reads" } else { "writes" }),
        destructive.then_some("may destroy"),
        (idempotent && !read_only).then_some("same if done twice"),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What `tools --json` prints.
#[derive(Serialize)]
pub(crate) struct ToolsJson<'a> {
    tools: Vec<ToolJson<'a>>,
    sources: Vec<SourceJson<'a>>,
}

#[derive(Serialize)]
struct ToolJson<'a> {
    name: &'a ToolName,
    toolset: Option<&'a str>,
    origin: &'a str,
    plugin: Option<&'a str>,
    /// The source that lists it; null where the project declares it.
    source: Option<&'a str>,
    remote: bool,
    annotations: Annotations,
    untrusted: bool,
    description: &'a str,
}

#[derive(Serialize)]
struct SourceJson<'a> {
    name: &'a str,
    ok: bool,
    error: Option<&'a str>,
    held_back_count: usize,
}

impl<'a> From<&'a KnownTools> for ToolsJson<'a> {
    fn from(known: &'a KnownTools) -> Self {
        Self {
            tools: known.tools.iter().map(ToolJson::from).collect(),
            sources: known.sources.iter().map(SourceJson::from).collect(),
        }
    }
}

impl<'a> From<&'a KnownTool> for ToolJson<'a> {
    fn from(known: &'a KnownTool) -> Self {
        let tool = &known.tool;
        Self {
            name: tool.name(),
            toolset: tool.toolset(),
            origin: tool.origin(),
            plugin: tool.plugin(),
            source: known.source.as_deref(),
            remote: known.source.is_some(),
            annotations: tool.annotations(),
            untrusted: tool.untrusted(),
            description: tool.description(),
        }
    }
}

impl<'a> From<&'a KnownSource> for SourceJson<'a> {
    fn from(source: &'a KnownSource) -> Self {
        let facts = &source.facts;
        Self {
            name: &facts.name,
            ok: facts.failure.is_none(),
            error: facts.failure.as_deref(),
            held_back_count: source.held_back,
        }
    }
}

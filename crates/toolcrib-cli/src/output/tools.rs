//! The tools of a project.

use serde_json::{Value, json};
use toolcrib_core::{Annotations, Glob, Tool};
use toolcrib_lint::SourceFacts;
use toolcrib_project::Project;

use super::{
    print::{note, say},
    text::{DIM, GOOD, STRONG, WARN, count, one_line, safe},
};
use crate::schema_types::SchemaTypes;

/// The tools of a project: declared ones, and those that sources list.
pub(crate) struct KnownTools {
    pub(crate) tools: Vec<KnownTool>,
    /// Listed by their sources, but their definitions prevent that they are offered.
    pub(crate) refused: Vec<KnownTool>,
    pub(crate) sources: Vec<KnownSource>,
}

/// A tool and the source that lists it; `None` for declared tools.
pub(crate) struct KnownTool {
    pub(crate) tool: Tool,
    pub(crate) source: Option<String>,
}

/// A source that was queried for its tools.
pub(crate) struct KnownSource {
    pub(crate) facts: SourceFacts,
    /// Whether an iteration can continue without it.
    pub(crate) may_fail: bool,
    /// The number of tools that it lists but never offers.
    pub(crate) withheld_count: usize,
}

impl KnownSource {
    /// Whether it failed and is required by an iteration.
    pub(crate) fn is_missing(&self) -> bool {
        self.facts.failure.is_some() && !self.may_fail
    }
}

/// Prints the tools by toolset, in their order.
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

/// Warns of `exclude` patterns of personalities that match no tool. Skipped if a source could not
/// be queried.
pub(crate) fn unmatched_excludes(project: &Project, known: &KnownTools) {
    if known
        .sources
        .iter()
        .any(|source| source.facts.failure.is_some() || source.withheld_count > 0)
    {
        return;
    }
    for personality in project.personalities() {
        let matches = |glob: &Glob| known.tools.iter().any(|known| glob.matches_tool(&known.tool));
        for glob in personality.exclude.iter().filter(|glob| !matches(glob)) {
            let (id, glob) = (safe(&personality.id), safe(glob.as_str()));
            note!(
                "{WARN}warning{WARN:#}: `{glob}` in `exclude` of personality {id} matches no tool"
            );
        }
    }
}

fn one(known: &KnownTool, verbose: bool) {
    let tool = &known.tool;
    say!("  {GOOD}{}{GOOD:#}  {}", tool.name(), description(tool, verbose));
    if verbose {
        parameters(tool.definition().input_schema());
    }
    let remote = if known.source.is_some() { ", remote" } else { "" };
    say!(
        "    {DIM}{}, from {}{remote}{DIM:#}",
        effects(tool.annotations()),
        safe(&tool.origin_label())
    );
}

/// The description on one line: with `verbose` all that a person reads, else its beginning.
pub(super) fn description(tool: &Tool, verbose: bool) -> String {
    one_line(tool.description(), if verbose { 10_000 } else { 72 })
}

/// Prints a line per argument: its name, type, and description. `tools --json` has the whole schema.
fn parameters(schema: &Value) {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let optional = if required.iter().any(|one| one == name) { "" } else { ", optional" };
        let description = property["description"].as_str().map(|text| one_line(text, 1_000));
        let description = description.map(|text| format!("  {text}")).unwrap_or_default();
        say!(
            "    {STRONG}{}{STRONG:#} {DIM}({}{optional}){DIM:#}{description}",
            safe(name),
            safe(&type_of(property, &mut SchemaTypes::new(schema), MOST_NESTED)),
        );
    }
}

/// Lists within lists that are shown, each with the type of its elements.
const MOST_NESTED: usize = 3;

/// The type of an argument in words; `any` unless the schema names one.
fn type_of<'a>(property: &'a Value, types: &mut SchemaTypes<'a>, nested: usize) -> String {
    let values = |list: &Vec<Value>, end: &str| {
        list.iter().map(ToString::to_string).collect::<Vec<_>>().join(end)
    };
    let mut shown: Vec<String> = Vec::new();
    for variant in types.variants(property) {
        let one = match (&variant["enum"], &variant["type"]) {
            (Value::Array(list), _) => one_line(&values(list, " | "), 200),
            (_, Value::String(one)) if one == "array" => {
                let items = variant.get("items").filter(|_| nested > 0);
                let items = items.map(|items| type_of(items, types, nested - 1));
                format!("array of {}", items.as_deref().unwrap_or("any"))
            }
            (_, Value::String(one)) => one.clone(),
            (_, Value::Array(list)) => values(list, " | ").replace('"', ""),
            _ => "any".to_owned(),
        };
        if !shown.contains(&one) {
            shown.push(one);
        }
    }
    one_line(&shown.join(" | "), 200)
}

/// The annotations of a tool's effects, in words.
fn effects(annotations: Annotations) -> String {
    let Annotations { read_only, destructive, idempotent } = annotations;
    let said = [
        Some(if read_only { "reads" } else { "writes" }),
        destructive.then_some("may destroy"),
        (idempotent && !read_only).then_some("idempotent"),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The output of `tools --json`, with probable mistakes in the project's files and in imported ones.
pub(crate) fn tools_json(known: &KnownTools, project: &Project) -> Value {
    let tools = known.tools.iter().map(|KnownTool { tool, source }| {
        json!({
            "name": tool.name(),
            "toolset": tool.toolset(),
            "origin": tool.origin(),
            "plugin": tool.plugin(),
            // Null for declared tools.
            "source": source,
            "remote": source.is_some(),
            "annotations": tool.annotations(),
            "untrusted": tool.untrusted(),
            "description": tool.description(),
            "input_schema": tool.definition().input_schema(),
        })
    });
    let sources = known.sources.iter().map(|KnownSource { facts, withheld_count, .. }| {
        json!({
            "name": facts.name,
            "ok": facts.failure.is_none(),
            "error": facts.failure,
            "withheld_count": withheld_count,
        })
    });
    json!({
        "tools": tools.collect::<Vec<_>>(),
        "sources": sources.collect::<Vec<_>>(),
        "warnings": project.warnings().warnings().collect::<Vec<_>>(),
    })
}

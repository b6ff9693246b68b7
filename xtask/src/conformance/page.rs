//! The matrix as a page of the documentation.

use std::fs;

use tinyjson::JsonValue;

use super::{COMMAND, PACKAGE, results::Run};
use crate::{
    example::{field, text},
    packages::unwritable,
    problem::Problem,
    workspace::Workspace,
};

const FILE: &str = "docs/conformance.md";
const FASTMCP: &str = "xtask/conformance/requirements.in";

/// The columns of server scenarios, with their headings.
const SERVERS: [(&str, &str); 11] = [
    ("direct/both", "fixture"),
    ("gateway/both", "Toolcrib, both"),
    ("gateway/sessions", "Toolcrib, sessions"),
    ("gateway/stateless", "Toolcrib, stateless"),
    ("direct/both/call", "fixture, asking in calls"),
    ("gateway/both/call", "Toolcrib, both, in calls"),
    ("gateway/sessions/call", "Toolcrib, sessions, in calls"),
    ("gateway/stateless/call", "Toolcrib, stateless, in calls"),
    ("fastmcp/both", "FastMCP, both"),
    ("fastmcp/sessions", "FastMCP, sessions"),
    ("fastmcp/stateless", "FastMCP, stateless"),
];

pub(crate) fn write(workspace: &Workspace, runs: &[Run]) -> Result<(), Problem> {
    let text = page(&Versions::read(workspace)?, runs);
    print!("{text}");
    let path = workspace.root().join(FILE);
    fs::write(&path, text).map_err(|error| unwritable(&path, &error))
}

struct Versions {
    suite: String,
    sdk: String,
    fastmcp: String,
}

impl Versions {
    fn read(workspace: &Workspace) -> Result<Self, Problem> {
        let package = workspace.read(PACKAGE)?;
        let package: JsonValue = package.parse().unwrap_or(JsonValue::Null);
        let dependencies = field(&package, "dependencies");
        let version = |name: &str| {
            dependencies.and_then(|all| text(all, name)).unwrap_or_default().to_owned()
        };
        let fastmcp = workspace.read(FASTMCP)?;
        let fastmcp = fastmcp.lines().find_map(|line| line.strip_prefix("fastmcp=="));
        Ok(Self {
            suite: version("@modelcontextprotocol/conformance"),
            sdk: version("@modelcontextprotocol/server"),
            fastmcp: fastmcp.unwrap_or_default().to_owned(),
        })
    }
}

fn page(versions: &Versions, runs: &[Run]) -> String {
    let Versions { suite, sdk, fastmcp } = versions;
    let mut sets: Vec<&str> = runs.iter().map(|run| run.set.as_str()).collect();
    sets.sort_unstable();
    sets.dedup();
    let find =
        |set: &str, column: &str| runs.iter().find(|run| run.set == set && run.column == column);

    let mut text = format!(
        "# MCP conformance

<!-- Written by `{COMMAND}`. -->

`{COMMAND}` runs the official suite, `@modelcontextprotocol/conformance` {suite}, for the requirement sets of
two protocol versions, and writes this page. Known failures of Toolcrib are in
[expected-failures.txt](../xtask/conformance/expected-failures.txt).

- Server scenarios run against [a fixture](../xtask/conformance/fixture.mjs) on the TypeScript SDK
  (`@modelcontextprotocol/server` {sdk}): directly, through `toolcrib serve --http`, and for comparison through the
  proxy of FastMCP {fastmcp}. The fixture speaks both versions, only 2025-11-25 (*sessions*), or only 2026-07-28
  (*stateless*). Its tools ask the client by a result that requires input, or, *in calls*, by requests while a call runs,
  as the SDK's own conformance server does; 2026-07-28 has no such requests, so a server of this version alone cannot
  ask. The suite sends no token and knows no prefixes of tool names, so a relay adds those of Toolcrib's
  gateway.
- Two gateways with separate homes on one PostgreSQL, of which a proxy sends each request to the next one, have the same
  verdicts as one gateway: the command fails otherwise.
- Client scenarios run `toolcrib mcp test`, `toolcrib mcp call`, `toolcrib mcp login` and `toolcrib menu`.
- The scenarios `sep-2640-…` are about skills. No requirement set contains them, so they are run in addition, once for each side.

✓ is a scenario that passes; `1/2` is one that fails, with one of two checks passed. The set does not require the
scenarios that are *not scored*.

## Required scenarios that pass

"
    );
    let heading: Vec<_> = SERVERS.iter().map(|(_, heading)| *heading).collect();
    table_head(&mut text, &format!("set | {} | Toolcrib as client", heading.join(" | ")));
    for set in &sets {
        let columns = SERVERS.iter().map(|(column, _)| *column).chain(["client"]);
        let scores = columns.map(|column| {
            let score = find(set, column).map(Run::score);
            score.map_or_else(String::new, |(passed, all)| format!("{passed}/{all}"))
        });
        text += &format!("| {set} | {} |\n", scores.collect::<Vec<_>>().join(" | "));
    }
    for set in &sets {
        text += &format!("\n## Server scenarios of {set}\n\n");
        table_head(&mut text, &format!("scenario | {}", heading.join(" | ")));
        let columns: Vec<_> = SERVERS.iter().map(|(column, _)| find(set, column)).collect();
        scenarios(&mut text, &columns);
    }
    text += "\n## Client scenarios\n\n";
    table_head(&mut text, &format!("scenario | {}", sets.join(" | ")));
    let columns: Vec<_> = sets.iter().map(|set| find(set, "client")).collect();
    scenarios(&mut text, &columns);
    text
}

fn table_head(text: &mut String, columns: &str) {
    let rule = "|---".repeat(columns.split(" | ").count());
    *text += &format!("| {columns} |\n{rule}|\n");
}

/// A row for each scenario of any column; the scored ones first.
fn scenarios(text: &mut String, columns: &[Option<&Run>]) {
    let mut names: Vec<(bool, &str)> = Vec::new();
    for scenario in columns.iter().flatten().flat_map(|run| &run.scenarios) {
        if !names.iter().any(|(_, name)| *name == scenario.name) {
            names.push((!scenario.scored, &scenario.name));
        }
    }
    names.sort_by_key(|(is_extra, _)| *is_extra);
    for (is_extra, name) in names {
        let cells = columns.iter().map(|run| match run.and_then(|run| run.scenario(name)) {
            None => String::new(),
            Some(found) if found.ok => "✓".to_owned(),
            Some(found) => format!("{}/{}", found.passed, found.passed + found.failed),
        });
        let note = if is_extra { " (not scored)" } else { "" };
        *text += &format!("| {name}{note} | {} |\n", cells.collect::<Vec<_>>().join(" | "));
    }
}

//! Configuration files of MCP clients: their servers, and a change of one.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use similar::{ChangeTag, TextDiff};

use super::{
    json as print_json,
    print::{note, say},
    text::{BAD, DIM, GOOD, STRONG, WARN, safe, shown},
};
use crate::clients::{Client, Scope, masked};

/// The result of `install`.
#[derive(Serialize)]
pub(crate) struct InstallJson {
    pub(crate) client: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) name: String,
    /// `installed`, `present`, `restored`, `removed`, `gone`, `not_made`.
    pub(crate) outcome: &'static str,
    /// The file as it was before.
    pub(crate) backup: Option<PathBuf>,
}

/// Shows the change of a file line by line. Texts of other entries may be secrets and are replaced.
pub(crate) fn client_change(
    client: Client,
    file: &Path,
    name: &str,
    before: Option<&str>,
    after: Option<&str>,
) {
    let mask = |text: &str| masked(client.format(), text, client.key(), name);
    let (old, new) = (before.map(mask).unwrap_or_default(), after.map(mask).unwrap_or_default());
    let what = match (before, after) {
        (None, _) => " (a new file)",
        (_, None) => " (the file is removed)",
        _ => "",
    };
    say!("{STRONG}{}{STRONG:#}{what}", shown(file));
    let diff = TextDiff::from_lines(&old, &new);
    for group in diff.grouped_ops(2) {
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = safe(change.value().trim_end_matches(['\r', '\n']));
            match change.tag() {
                ChangeTag::Delete => say!("{BAD}- {line}{BAD:#}"),
                ChangeTag::Insert => say!("{GOOD}+ {line}{GOOD:#}"),
                ChangeTag::Equal => say!("  {line}"),
            }
        }
    }
    if old == new {
        note!("{DIM}only texts change that are not shown, because they may be secrets{DIM:#}");
    }
}

/// The result of `install`.
pub(crate) fn installed(report: &InstallJson, title: &str, json: bool, quiet: bool) {
    if json {
        return print_json(report);
    }
    let file = shown(&report.file);
    let name = safe(&report.name);
    match report.outcome {
        "installed" => say!("{GOOD}installed{GOOD:#} `{name}` for {title}"),
        "present" => say!("{GOOD}✓{GOOD:#} {file} has this entry already"),
        "restored" => say!("{GOOD}restored{GOOD:#} {file} as it was before"),
        "removed" => {
            say!("{GOOD}removed{GOOD:#} `{name}` from {file}, which has changed since");
        }
        "entry_restored" => {
            say!(
                "{GOOD}restored{GOOD:#} the former entry `{name}` of {file}, which has changed since"
            );
        }
        "gone" => say!("{file} has no entry `{name}` any more"),
        _ => say!("{WARN}not made{WARN:#}: `--dry-run`"),
    }
    if quiet {
        return;
    }
    if let Some(backup) = &report.backup {
        note!("{DIM}the file as it was: {}{DIM:#}", shown(backup));
    }
    if report.outcome == "installed" {
        note!("{DIM}{title} reads it when it starts; to undo it, add --uninstall{DIM:#}");
    }
}

/// A configuration file with servers.
pub(crate) struct ConfiguredFile {
    pub(crate) client: Client,
    pub(crate) scope: Scope,
    pub(crate) file: PathBuf,
    pub(crate) servers: Vec<ConfiguredServer>,
    /// Why it cannot be read.
    pub(crate) problem: Option<String>,
}

/// A server in it, without values.
pub(crate) struct ConfiguredServer {
    pub(crate) name: String,
    /// `program` or `http`.
    pub(crate) kind: Option<&'static str>,
    pub(crate) disabled: bool,
    /// Why it cannot be imported.
    pub(crate) problem: Option<String>,
}

/// The result of `discover`.
#[derive(Serialize)]
pub(crate) struct DiscoverJson {
    files: Vec<serde_json::Value>,
}

impl DiscoverJson {
    pub(crate) fn new(files: &[ConfiguredFile]) -> Self {
        let file = |found: &ConfiguredFile| {
            let server = |server: &ConfiguredServer| {
                json!({
                    "name": server.name,
                    "kind": server.kind,
                    "disabled": server.disabled,
                    "problem": server.problem,
                })
            };
            json!({
                "client": found.client.id(),
                "scope": scope(found.scope),
                "file": found.file,
                "servers": found.servers.iter().map(server).collect::<Vec<_>>(),
                "problem": found.problem,
            })
        };
        Self { files: files.iter().map(file).collect() }
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "user",
        Scope::Project => "project",
    }
}

/// The servers of each file.
pub(crate) fn discovered(files: &[ConfiguredFile], quiet: bool) {
    for found in files {
        let of = match found.scope {
            Scope::User => "",
            Scope::Project => ", this folder",
        };
        say!("{STRONG}{}{STRONG:#}{of}  {DIM}{}{DIM:#}", found.client.title(), shown(&found.file));
        if let Some(problem) = &found.problem {
            say!("  {BAD}{}{BAD:#}", safe(problem));
        } else if found.servers.is_empty() {
            say!("  {DIM}no servers{DIM:#}");
        }
        for server in &found.servers {
            let state = match (server.disabled, &server.problem, server.kind) {
                (true, ..) => format!("{DIM}disabled{DIM:#}"),
                (_, Some(problem), _) => {
                    format!("{WARN}not usable here{WARN:#}: {}", safe(problem))
                }
                (_, _, Some("http")) => "endpoint".to_owned(),
                (_, _, Some(kind)) => kind.to_owned(),
                _ => "unknown".to_owned(),
            };
            say!("  {}  {state}", safe(&server.name));
        }
    }
    if files.is_empty() {
        let names: Vec<_> = Client::ALL.iter().map(|client| client.title()).collect();
        note!("no configuration of these clients was found: {}", names.join(", "));
    } else if !quiet {
        note!("{DIM}to list the tools of a file: toolcrib mcp list --import FILE{DIM:#}");
    }
}

/// A server of the project's file: `added`, `removed` or `declared`.
pub(crate) fn server_entry(
    outcome: &str,
    name: &str,
    file: &Path,
    entry: Option<&serde_json::Value>,
    json: bool,
) {
    if json {
        let report = json!({ "outcome": outcome, "name": name, "file": file, "entry": entry });
        return print_json(&report);
    }
    say!("{GOOD}{outcome}{GOOD:#} `[mcp.{}]` in {}", safe(name), shown(file));
    for (key, value) in entry.and_then(|entry| entry.as_object()).into_iter().flatten() {
        say!("  {} = {}", safe(key), safe(&value.to_string()));
    }
}

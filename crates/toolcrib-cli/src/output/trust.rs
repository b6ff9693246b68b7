//! Trusted projects, and actions without consent.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use toolcrib_project::{Power, TrustChange, TrustRecord};

use super::{
    json as print_json,
    print::{note, say},
    text::{DIM, GOOD, WARN, count, safe, shown},
};

/// The actions that a project may perform, one per line.
pub(crate) fn powers(powers: &[Power]) -> String {
    let indented = |power: &Power| format!("\n  {}", power.to_string().replace('\n', "\n  "));
    powers.iter().map(indented).collect()
}

/// The changes of a project since it was trusted, one per line.
pub(crate) fn changes(changes: &[TrustChange]) -> String {
    let marked = |change: &TrustChange| {
        let mark = if change.is_new { '+' } else { '-' };
        format!("\n  {mark} {}", change.text.replace('\n', &format!("\n  {mark} ")))
    };
    changes.iter().map(marked).collect()
}

/// Prints a notice that the user must see before anything is done.
pub(crate) fn notice(text: &str) {
    note!("{WARN}note{WARN:#}: {}", safe(text));
}

/// The result of `trust`.
#[derive(Serialize)]
pub(crate) struct TrustJson {
    path: PathBuf,
    /// The newly accepted owner.
    owner: Option<u32>,
    /// The actions that the project may perform; absent if there is none.
    #[serde(serialize_with = "as_texts")]
    pub(crate) powers: Option<Vec<Power>>,
    /// The changes since it was trusted before, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<Vec<TrustChange>>,
}

impl TrustJson {
    pub(crate) fn new(path: &Path, owner: Option<u32>) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self { path, owner, powers: None, changes: None }
    }
}

#[expect(clippy::ref_option, reason = "serde hands it over so")]
fn as_texts<S: serde::Serializer>(
    powers: &Option<Vec<Power>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let texts = powers.iter().flatten().map(Power::to_string).collect::<Vec<_>>();
    powers.is_some().then_some(texts).serialize(serializer)
}

/// Prints the actions that are now permitted.
pub(crate) fn trusted(done: &TrustJson, json: bool, quiet: bool) {
    if json {
        return print_json(done);
    }
    let path = shown(&done.path);
    if let Some(uid) = done.owner {
        say!("{GOOD}accepted{GOOD:#} files of uid {uid} in {path}");
    }
    let Some(of_project) = &done.powers else { return };
    say!("{GOOD}trusted{GOOD:#} {path}");
    if quiet {
        return;
    }
    if let Some(since) = &done.changes {
        note!("{DIM}it has changed since you trusted it before:{DIM:#}{}", safe(&changes(since)));
        return;
    }
    match of_project.as_slice() {
        [] => note!("{DIM}it does nothing that needs trust{DIM:#}"),
        of_project => note!(
            "{DIM}it may now do the following; you are asked again before it can do more (files \
             that its programs load by themselves do not count):{DIM:#}{}",
            safe(&powers(of_project))
        ),
    }
}

/// Lists trusted projects and owners.
pub(crate) fn all_trusted(all: &[TrustRecord], json: bool) {
    if json {
        return print_json(&json!({ "trusted": all }));
    }
    for TrustRecord { path, actions, owner, .. } in all {
        let owner = owner.map(|uid| format!("  {DIM}files of uid {uid}{DIM:#}"));
        let project = actions.as_ref().map(|actions| {
            format!("  {DIM}project with {}{DIM:#}", count(actions.len(), "trusted action"))
        });
        say!("{}{}{}", shown(path), project.unwrap_or_default(), owner.unwrap_or_default());
    }
}

/// Prints the revoked trust.
pub(crate) fn trust_removed(path: &Path, removed: bool, json: bool) {
    if json {
        return print_json(&json!({ "path": path, "removed": removed }));
    }
    if removed {
        say!("{GOOD}removed{GOOD:#} {}", shown(path));
    } else {
        note!("{} was not trusted", shown(path));
    }
}

/// Prints the path of a database's old file.
pub(crate) fn kept(database: &str, file: &Path) {
    note!("{DIM}the old database {} is kept as {}{DIM:#}", safe(database), shown(file));
}

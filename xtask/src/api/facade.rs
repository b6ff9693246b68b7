//! Whether the crate `toolcrib` is complete: users depend on it alone, so each type that one of its
//! signatures needs must have a path in it, and each path that the documentation names must exist.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

use regex_lite::Regex;
use tinyjson::JsonValue;

use super::{
    features::{lists, off, together},
    rustdoc::{Crate, kind, members, signature},
};
use crate::{
    example::{field, items, text},
    problem::Problem,
    workspace::Workspace,
};

/// The facade.
pub(super) const NAME: &str = "toolcrib";

/// Its features.
const MANIFEST: &str = "crates/toolcrib/Cargo.toml";
/// The features of the declared kinds.
const KINDS: &str = "crates/toolcrib-tools/Cargo.toml";
/// The crate that it has without any feature.
const CORE: &str = "toolcrib_core";

/// The folders with pages for users.
const PAGES: [&str; 3] = [".", "docs", "examples"];
/// Pages among them for contributors, and on former versions.
const OTHERS: [&str; 3] = ["CHANGELOG.md", "CONTRIBUTING.md", "architecture.md"];

/// Fails if a type or a documented path is missing. Returns the facade.
pub(super) fn check<'a>(
    workspace: &Workspace,
    crates: &'a BTreeMap<String, Crate>,
) -> Result<Facade<'a>, Problem> {
    let (manifest, kinds) = (workspace.read(MANIFEST)?, workspace.read(KINDS)?);
    let off = off(&lists(&manifest), &lists(&kinds));
    if !off.is_empty() {
        return Err(Problem::new(
            format!("{MANIFEST}: no feature turns on the features {} of {KINDS}", off.join(", ")),
            "add a feature with the name of the kind, and a row to the table in src/lib.rs",
        ));
    }
    let facade = Facade::of(crates, together(&lists(&manifest)));
    let missing = facade.missing(workspace);
    if !missing.is_empty() {
        return Err(Problem::new(
            format!(
                "signatures of `{NAME}` need {} types that have no path in it, or only one that another \
                 feature adds:\n{}",
                missing.len(),
                missing.join("\n")
            ),
            "re-export each in the module of crates/toolcrib/src where a user looks for it, or take it \
             out of the signature",
        ));
    }
    let unknown = facade.unknown_in_pages(workspace)?;
    if unknown.is_empty() {
        return Ok(facade);
    }
    Err(Problem::new(unknown.join("\n"), "name paths that a crate with only `toolcrib` can use"))
}

/// Public items as a crate sees them that depends on the facade only.
#[derive(Clone)]
pub(super) struct Facade<'a> {
    crates: &'a BTreeMap<String, Crate>,
    /// The crates that the facade has if it has a crate.
    together: BTreeMap<String, BTreeSet<String>>,
    /// All paths, of members too.
    paths: BTreeSet<String>,
    /// The paths of modules and items, by path and definition.
    places: BTreeMap<(String, String), Place<'a>>,
    /// The definitions of the items that have a path, each with the crates that export it: it has a path if
    /// the facade has one of them.
    exported: BTreeMap<String, BTreeSet<&'a str>>,
    /// The definitions that signatures need, each with the first signature that a crate exports.
    needed: BTreeMap<(String, &'a str), Signature<'a>>,
}

/// A path of a module or an item.
#[derive(Clone)]
pub(super) struct Place<'a> {
    pub(super) path: String,
    pub(super) definition: String,
    /// The item, and its crate; none if that is not of the workspace.
    pub(super) item: Option<(&'a Crate, &'a JsonValue)>,
}

/// A signature, and the path of its item.
#[derive(Clone)]
struct Signature<'a> {
    path: String,
    item: &'a JsonValue,
    kind: &'a str,
}

impl<'a> Facade<'a> {
    fn of(
        crates: &'a BTreeMap<String, Crate>,
        together: BTreeMap<String, BTreeSet<String>>,
    ) -> Self {
        let (paths, places) = (BTreeSet::new(), BTreeMap::new());
        let (exported, needed) = (BTreeMap::new(), BTreeMap::new());
        let mut facade = Self { crates, together, paths, places, exported, needed };
        if let Some((krate, root)) = crates.get(NAME).and_then(|krate| Some((krate, krate.root()?)))
        {
            facade.module(krate, root, NAME);
        }
        facade
    }

    /// The paths of modules and items, in their order.
    pub(super) fn places(&self) -> impl Iterator<Item = &Place<'a>> {
        self.places.values()
    }

    fn place(&mut self, path: &str, definition: &str, item: Option<(&'a Crate, &'a JsonValue)>) {
        let (path, definition) = (path.to_owned(), definition.to_owned());
        let place = Place { path: path.clone(), definition: definition.clone(), item };
        self.places.insert((path, definition), place);
    }

    fn module(&mut self, krate: &'a Crate, module: &'a JsonValue, path: &str) {
        self.paths.insert(path.to_owned());
        self.place(path, &format!("module {path}"), Some((krate, module)));
        let inner = field(module, "inner").and_then(|inner| field(inner, "module"));
        for id in inner.into_iter().flat_map(|inner| items(inner, "items")) {
            let Some(item) = krate.item(id) else { continue };
            let Some((kind, inner)) = kind(item) else { continue };
            if kind != "use" {
                let name = text(item, "name").unwrap_or_default();
                self.named(krate, id, &krate.name, &format!("{path}::{name}"));
                continue;
            }
            let Some(target) = field(inner, "id") else { continue };
            let is_glob = field(inner, "is_glob").and_then(JsonValue::get::<bool>) == Some(&true);
            if !is_glob && let Some(name) = text(inner, "name") {
                let exporter = match text(inner, "source").and_then(|path| path.split("::").next())
                {
                    Some(of) if krate.name == NAME && self.crates.contains_key(of) => of,
                    _ => &krate.name,
                };
                self.named(krate, target, exporter, &format!("{path}::{name}"));
            } else if let Some((krate, module)) = self.resolved(krate, target) {
                self.module(krate, module, path);
            }
        }
    }

    /// The item of an id, and its crate, which may be another of the workspace.
    fn resolved(&self, krate: &'a Crate, id: &JsonValue) -> Option<(&'a Crate, &'a JsonValue)> {
        if let Some(item) = krate.item(id) {
            return Some((krate, item));
        }
        self.defined_at(&krate.definition(id)?)
    }

    fn defined_at(&self, definition: &str) -> Option<(&'a Crate, &'a JsonValue)> {
        let krate = self.crates.get(definition.split("::").next()?)?;
        Some((krate, krate.defined(definition)?))
    }

    /// An item that has this path, with all that belongs to it.
    fn named(&mut self, krate: &'a Crate, id: &JsonValue, exporter: &'a str, path: &str) {
        let definition = krate.definition(id);
        let Some((krate, item)) = self.resolved(krate, id) else {
            // Of a crate that is not of the workspace: its signatures are not known.
            self.paths.insert(path.to_owned());
            self.place(path, definition.as_deref().unwrap_or(path), None);
            return;
        };
        if kind(item).is_some_and(|(kind, _)| kind == "module") {
            return self.module(krate, item, path);
        }
        self.place(path, definition.as_deref().unwrap_or(path), Some((krate, item)));
        if let Some(definition) = definition {
            self.exported.entry(definition).or_default().insert(exporter);
        }
        self.shown(krate, item, exporter, path);
    }

    fn shown(&mut self, krate: &'a Crate, item: &'a JsonValue, exporter: &'a str, path: &str) {
        self.paths.insert(path.to_owned());
        let Some((kind, inner)) = kind(item) else { return };
        for definition in references(krate, inner) {
            let signature = Signature { path: path.to_owned(), item, kind };
            self.needed.entry((definition, exporter)).or_insert(signature);
        }
        for member in members(inner).filter_map(|id| krate.item(id)) {
            let name = text(member, "name").unwrap_or_default();
            self.shown(krate, member, exporter, &format!("{path}::{name}"));
        }
        let impls = items(inner, "impls").chain(items(inner, "implementations"));
        for item in impls.filter_map(|id| krate.item(id)).filter(|item| is_written(item)) {
            self.shown(krate, item, exporter, path);
        }
    }

    /// Whether a definition has a path wherever a crate's signatures have one.
    fn has(&self, definition: &str, signatures: &str) -> bool {
        let together = self.together.get(signatures);
        let is_there = |exporter: &&str| {
            [CORE, signatures].contains(exporter)
                || together.is_some_and(|together| together.contains(*exporter))
        };
        self.exported
            .get(definition)
            .is_some_and(|exporters| signatures == NAME || exporters.iter().any(is_there))
    }

    /// The missing types, each with a signature that needs it; also those that only the signatures of
    /// missing types need.
    fn missing(&self, workspace: &Workspace) -> Vec<String> {
        let mut all = self.clone();
        let mut seen = BTreeSet::new();
        let is_new = |(definition, exporter): &(String, &str), seen: &BTreeSet<String>| {
            !self.has(definition, exporter) && !seen.contains(definition)
        };
        loop {
            let next = all.needed.keys().find(|need| is_new(need, &seen)).cloned();
            let Some((definition, exporter)) = next else { break };
            if let Some((krate, item)) = all.defined_at(&definition) {
                all.shown(krate, item, exporter, &definition);
            }
            seen.insert(definition);
        }
        let mut missing = BTreeMap::new();
        for ((definition, exporter), Signature { path, item, kind }) in &all.needed {
            if !self.has(definition, exporter) {
                missing.entry(definition).or_insert_with(|| {
                    format!("{definition}\n    for {path}: {}", signature(workspace, item, kind))
                });
            }
        }
        missing.into_values().collect()
    }

    /// The paths that pages name and that do not exist.
    fn unknown_in_pages(&self, workspace: &Workspace) -> Result<Vec<String>, Problem> {
        let mut unknown = Vec::new();
        for page in workspace.files(&PAGES, "md")? {
            if page.file_name().is_some_and(|name| OTHERS.iter().any(|other| name == *other)) {
                continue;
            }
            let text = workspace.read(&page)?;
            let shown = workspace.shown(Path::new(&page));
            let missing = named(&text).into_iter().filter(|path| !self.paths.contains(*path));
            unknown.extend(
                missing.map(|path| format!("{shown} names `{path}`, which does not exist")),
            );
        }
        Ok(unknown)
    }
}

/// The definitions that a part of a signature names, of crates of the workspace.
fn references(krate: &Crate, part: &JsonValue) -> Vec<String> {
    let mut found = Vec::new();
    let mut parts = vec![part];
    while let Some(part) = parts.pop() {
        // Types and traits have both fields, and items that are only listed have neither.
        if text(part, "path").is_some()
            && let Some(definition) = field(part, "id").and_then(|id| krate.definition(id))
            && definition.starts_with(NAME)
        {
            found.push(definition);
        }
        if let Some(fields) = part.get::<HashMap<String, JsonValue>>() {
            parts.extend(fields.values());
        } else if let Some(list) = part.get::<Vec<JsonValue>>() {
            parts.extend(list);
        }
    }
    found
}

/// Whether an implementation is in the code, and not one that the compiler adds to every type.
fn is_written(item: &JsonValue) -> bool {
    let Some((_, inner)) = kind(item) else { return false };
    let is_synthetic = field(inner, "is_synthetic").and_then(JsonValue::get::<bool>);
    let is_blanket = field(inner, "blanket_impl").is_some_and(|of| !of.is_null());
    is_synthetic != Some(&true) && !is_blanket
}

/// The Rust paths of this workspace that a text names.
fn named(text: &str) -> Vec<&str> {
    let path = Regex::new(r"\btoolcrib(_[a-z]+)?(::[A-Za-z_]\w*)+").ok();
    path.into_iter()
        .flat_map(|path| path.find_iter(text).map(|found| found.as_str()).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_texts_are_those_of_the_workspace() {
        let text =
            "`toolcrib::sessions::KvStore`, toolcrib_tools::web, not my_toolcrib::x or toolcrib";
        assert_eq!(named(text), ["toolcrib::sessions::KvStore", "toolcrib_tools::web"]);
    }
}

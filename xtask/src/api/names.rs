//! The names that a user of the facade can reach. Each item has one line with the names that belong to it: its methods,
//! variants and fields. A digest of all signatures changes with each of them. Further paths of an item are listed with their
//! module.

use std::collections::{BTreeMap, BTreeSet};

use tinyjson::JsonValue;

use super::{
    facade::{Facade, Place},
    rustdoc::{Crate, kind, members, signature},
};
use crate::{
    example::{field, items, text},
    workspace::Workspace,
};

/// The module that has only names of others.
const PRELUDE: &str = "toolcrib::prelude::";

/// The lines of the snapshot.
pub(super) fn list(workspace: &Workspace, facade: &Facade<'_>) -> Vec<String> {
    let mut first = BTreeMap::<&str, &Place<'_>>::new();
    for place in facade.places() {
        let known = first.entry(&place.definition).or_insert(place);
        if rank(place) < rank(known) {
            *known = place;
        }
    }
    let (mut lines, mut further) = (BTreeSet::new(), BTreeMap::<&str, BTreeSet<&str>>::new());
    for place in facade.places() {
        let Some((module, name)) = place.path.rsplit_once("::") else { continue };
        if first.get(place.definition.as_str()).is_some_and(|first| first.path == place.path) {
            lines.insert(line(workspace, place));
        } else {
            further.entry(module).or_default().insert(name);
        }
    }
    let joined = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(" ");
    lines
        .extend(further.into_iter().map(|(path, names)| format!("{path} also: {}", joined(names))));
    lines.into_iter().collect()
}

/// The path that describes an item comes first: that in a module, before those in the root and in the prelude.
fn rank<'a>(place: &'a Place<'_>) -> (bool, bool, &'a str) {
    let path = place.path.as_str();
    (path.starts_with(PRELUDE), path.matches("::").count() == 1, path)
}

fn line(workspace: &Workspace, place: &Place<'_>) -> String {
    let path = &place.path;
    let Some((krate, item)) = place.item else { return format!("{path} of another crate") };
    let Some((kind, _)) = kind(item) else { return path.clone() };
    if kind == "module" {
        return format!("{path} module");
    }
    let mut signatures = Signatures { workspace, krate, lines: BTreeSet::new() };
    signatures.shown(item, "");
    let digest = digest(&signatures.lines);
    let names: BTreeSet<_> = signatures.lines.iter().filter_map(|line| member(line)).collect();
    let names: String = names.into_iter().map(|name| format!(" {name}")).collect();
    let colon = if names.is_empty() { "" } else { ":" };
    format!("{path} {kind} {digest:08x}{colon}{names}")
}

/// The name of a member in the line of its signature, `::NAME SIGNATURE`. Fields without a name have none.
fn member(line: &str) -> Option<&str> {
    let name = line.strip_prefix("::")?.split(' ').next()?;
    let last = name.rsplit("::").next()?;
    (!last.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

/// FNV-1a, 32 bits.
fn digest(lines: &BTreeSet<String>) -> u32 {
    let bytes = lines.iter().flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The signatures of an item and of all that belongs to it: `::PATH SIGNATURE`.
struct Signatures<'a> {
    workspace: &'a Workspace,
    krate: &'a Crate,
    lines: BTreeSet<String>,
}

impl<'a> Signatures<'a> {
    /// An item under its path, with all that belongs to it.
    fn shown(&mut self, item: &JsonValue, path: &str) {
        let Some((kind, inner)) = kind(item) else { return };
        self.lines.insert(format!("{path} {}", signature(self.workspace, item, kind)));
        let members = members(inner).filter_map(|id| self.krate.item(id));
        for member in members.collect::<Vec<_>>() {
            self.shown(member, &format!("{path}::{}", text(member, "name").unwrap_or_default()));
        }
        let found: Vec<_> = items(inner, "impls").filter_map(|id| self.krate.item(id)).collect();
        let derived: BTreeSet<_> =
            found.into_iter().filter_map(|of| self.implementation(of, path)).collect();
        if !derived.is_empty() {
            let derived = derived.into_iter().collect::<Vec<_>>().join(", ");
            self.lines.insert(format!("{path} derive({derived})"));
        }
    }

    /// The name of the trait where it is derived.
    fn implementation(&mut self, item: &'a JsonValue, path: &str) -> Option<&'a str> {
        let (_, inner) = kind(item)?;
        let is = |name| field(inner, name).and_then(JsonValue::get::<bool>) == Some(&true);
        if is("is_synthetic") || field(inner, "blanket_impl").is_some_and(|of| !of.is_null()) {
            return None;
        }
        match field(inner, "trait").and_then(|of| text(of, "path")) {
            Some(name) => {
                let written = signature(self.workspace, item, "impl");
                if !written.starts_with("impl") {
                    return Some(name).filter(|name| *name != "StructuralPartialEq");
                }
                self.lines.insert(format!("{path} {written}"));
            }
            None => {
                let members: Vec<_> =
                    items(inner, "items").filter_map(|id| self.krate.item(id)).collect();
                for member in members {
                    let name = text(member, "name").unwrap_or_default();
                    self.shown(member, &format!("{path}::{name}"));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_members_are_listed_and_numbers_of_fields_are_not() {
        assert_eq!(member("::run pub async fn run(&self)"), Some("run"));
        assert_eq!(member("::Failed::error error: RunError"), Some("Failed::error"));
        assert_eq!(member("::Failed::0 RunError"), None);
        assert_eq!(member(" derive(Clone)"), None);
    }

    #[test]
    fn a_changed_signature_changes_the_digest() {
        let of = |line: &str| digest(&BTreeSet::from([line.to_owned()]));
        assert_ne!(of("::run pub fn run(&self)"), of("::run pub fn run(self)"));
        assert_eq!(digest(&BTreeSet::new()), 0x811c_9dc5);
    }
}

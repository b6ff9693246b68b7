//! The JSON that rustdoc writes of a crate: items by id, and the paths of all items that it names.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
};

use tinyjson::JsonValue;

use crate::{
    example::{field, items, text},
    problem::Problem,
    workspace::Workspace,
};

/// The crate without pages: a program.
const PROGRAM: &str = "toolcrib-cli";

/// What rustdoc says of one crate.
pub(super) struct Crate {
    pub(super) name: String,
    json: JsonValue,
    /// The ids of the crate's own items, by their definitions.
    ids: HashMap<String, String>,
}

/// The libraries of the workspace, by name.
pub(super) fn read(workspace: &Workspace) -> Result<BTreeMap<String, Crate>, Problem> {
    let names = workspace.crates()?.into_iter().filter(|name| name != PROGRAM);
    let read = |name: String| {
        let name = name.replace('-', "_");
        let path = workspace.target().join("doc").join(format!("{name}.json"));
        let json = workspace.read(&path)?.parse().map_err(|error| {
            Problem::new(format!("{}: {error}", path.display()), "delete the file, and try again")
        })?;
        Ok((name.clone(), Crate::new(name, json)))
    };
    names.map(read).collect()
}

impl Crate {
    fn new(name: String, json: JsonValue) -> Self {
        let paths = field(&json, "paths").and_then(JsonValue::get::<HashMap<_, _>>);
        let own = paths.into_iter().flatten().filter(|(_, path)| {
            field(path, "crate_id").and_then(JsonValue::get::<f64>) == Some(&0.0)
        });
        let ids = own.map(|(id, path)| (joined(path), id.clone())).collect();
        Self { name, json, ids }
    }

    /// The module of the crate.
    pub(super) fn root(&self) -> Option<&JsonValue> {
        self.item(field(&self.json, "root")?)
    }

    /// The item of an id, if it is of this crate and shown.
    pub(super) fn item(&self, id: &JsonValue) -> Option<&JsonValue> {
        field(field(&self.json, "index")?, &id.get::<f64>()?.to_string())
    }

    /// The path of the definition of an item, which may be of another crate. It begins with the name of
    /// the crate; its modules may be private.
    pub(super) fn definition(&self, id: &JsonValue) -> Option<String> {
        field(field(&self.json, "paths")?, &id.get::<f64>()?.to_string()).map(joined)
    }

    /// The item of this crate with that definition, if it is shown.
    pub(super) fn defined(&self, definition: &str) -> Option<&JsonValue> {
        field(field(&self.json, "index")?, self.ids.get(definition)?)
    }
}

fn joined(path: &JsonValue) -> String {
    let names: Vec<_> =
        items(path, "path").filter_map(JsonValue::get::<String>).map(String::as_str).collect();
    names.join("::")
}

/// What an item is, and what is said of it as such.
pub(super) fn kind(item: &JsonValue) -> Option<(&str, &JsonValue)> {
    let inner = field(item, "inner")?.get::<HashMap<String, JsonValue>>()?;
    inner.iter().next().map(|(kind, inner)| (kind.as_str(), inner))
}

/// The ids of what belongs to an item: variants, methods, public fields.
pub(super) fn members(inner: &JsonValue) -> impl Iterator<Item = &JsonValue> {
    ["variants", "items"].into_iter().flat_map(|of| items(inner, of)).chain(fields(inner))
}

/// The ids of the public fields of a struct or of a variant.
fn fields(inner: &JsonValue) -> impl Iterator<Item = &JsonValue> {
    let kind = field(inner, "kind");
    let named = ["plain", "struct"].into_iter().filter_map(move |of| field(kind?, of));
    let tuple = kind.into_iter().flat_map(|kind| items(kind, "tuple"));
    named.flat_map(|named| items(named, "fields")).chain(tuple)
}

/// What is written of an item, up to its body or value.
pub(super) fn signature(workspace: &Workspace, item: &JsonValue, kind: &str) -> String {
    let written = field(item, "span").and_then(|span| {
        let place = |name| -> Option<(usize, usize)> {
            let mut numbers = items(span, name).filter_map(JsonValue::get::<f64>);
            Some((*numbers.next()? as usize, *numbers.next()? as usize))
        };
        let source = fs::read_to_string(workspace.root().join(text(span, "filename")?)).ok()?;
        let ((first, begin), (last, end)) = (place("begin")?, place("end")?);
        let mut lines: Vec<_> = source.lines().take(last).skip(first.checked_sub(1)?).collect();
        let tail = lines.last_mut()?;
        *tail = tail.get(..end.checked_sub(1)?)?;
        lines.join(" ").get(begin.checked_sub(1)?..).map(str::to_owned)
    });
    let written = written.unwrap_or_else(|| kind.to_owned());
    let ends: &[char] = match kind {
        "function" | "trait" | "impl" | "type_alias" | "assoc_type" => &['{', ';'],
        "constant" | "assoc_const" => &['=', ';'],
        "struct_field" => &[],
        "struct" | "enum" | "union" => &['{', '(', ';'],
        _ => return kind.to_owned(),
    };
    let end = written.find(ends).unwrap_or(written.len());
    written.get(..end).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

//! A document, and its operations before they are made.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use toolcrib_capabilities::http::Method;
use toolcrib_config::suggest;
use toolcrib_core::{__internal::PlainJson, ToolName};

use super::yaml;

/// The largest document, in bytes.
pub const MAX_DOCUMENT: u64 = 32 * 1024 * 1024;

/// The limit of references that lead to one another.
const LONGEST_CHAIN: usize = 32;

/// The methods of a path item.
const METHODS: [(&str, Method); 7] = [
    ("get", Method::GET),
    ("put", Method::PUT),
    ("post", Method::POST),
    ("delete", Method::DELETE),
    ("options", Method::OPTIONS),
    ("head", Method::HEAD),
    ("patch", Method::PATCH),
];

/// The other keys of a path item. The last two are said as operations that are left out.
const ITEM_KEYS: [&str; 7] =
    ["$ref", "summary", "description", "servers", "parameters", "query", "additionalOperations"];

/// Parts of paths that become no operations, each with help.
const LOST: [(&str, &str); 5] = [
    (
        "paths that cannot be read",
        "a path begins with `/`, is a map, and its references are in the document",
    ),
    (
        "operations of the method TRACE, which is not called",
        "remove them, or declare another method",
    ),
    ("operations that are not maps", "write a map with `responses`, or remove them"),
    (
        "unknown keys of paths",
        "write methods in lower case, and begin the names of extensions with `x-`",
    ),
    (
        "operations beside a `$ref`, which replaces them",
        "move them into the part that it refers to",
    ),
];

/// An OpenAPI document: 3.0, 3.1, or Swagger 2.0. A later 3.x is read as 3.1.
#[derive(Debug)]
pub struct OpenApi {
    root: Value,
    /// The bytes of its text.
    pub(super) bytes: usize,
    /// The keys that occur twice in an object, with their lines where known.
    repeated: Vec<String>,
    pub(super) version: Version,
}

/// The version of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Swagger2,
    V3_0,
    V3_1,
}

/// A text that is not an OpenAPI document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not an OpenAPI document: {problem}")]
pub struct OpenApiError {
    problem: String,
}

/// An operation as the document outlines it.
#[derive(Debug, Clone)]
pub struct Outline<'d> {
    /// Its `operationId`, if it has one.
    pub id: Option<&'d str>,
    /// Its method.
    pub method: Method,
    /// Its path, with places: `/orders/{id}`.
    pub path: &'d str,
    /// Its tags.
    pub tags: Vec<&'d str>,
    pub(super) item: &'d Map<String, Value>,
    pub(super) operation: &'d Map<String, Value>,
}

impl OpenApi {
    /// Parses a document, JSON or YAML.
    ///
    /// # Errors
    /// [`OpenApiError`] for another text, and for versions other than 2.0, 3.0 and 3.1.
    pub fn parse(text: &str) -> Result<Self, OpenApiError> {
        let refuse = |problem: String| OpenApiError { problem };
        // Programs on Windows begin files with a byte order mark.
        let text = text.trim_start_matches('\u{feff}');
        let (root, repeated) = if text.trim_start().starts_with('{') {
            PlainJson::read_document(yaml::MOST_REPEATED, text)
                .map_err(|error| refuse(format!("as JSON, {error}")))?
        } else {
            yaml::parse(text).map_err(|problem| refuse(format!("as YAML, {problem}")))?
        };
        let said = |key: &str| match root.get(key) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let version = match (said("openapi"), said("swagger")) {
            (Some(version), _) if version.starts_with("3.0") || version == "3" => Version::V3_0,
            (Some(version), _) if version.starts_with("3.") => Version::V3_1,
            (None, Some(version)) if version.starts_with('2') => Version::Swagger2,
            (Some(version), _) | (None, Some(version)) => {
                let known = "2.0, 3.0 and 3.1 are read";
                return Err(refuse(format!(
                    "its version is `{}`; {known}",
                    version.escape_debug()
                )));
            }
            (None, None) => {
                return Err(refuse("it has neither a key `openapi` nor `swagger`".to_owned()));
            }
        };
        Ok(Self { root, bytes: text.len(), repeated, version })
    }

    pub(super) fn root(&self) -> &Value {
        &self.root
    }

    /// The text at a pointer, trimmed; `None` where there is none.
    fn text(&self, pointer: &str) -> Option<&str> {
        let text = self.root.pointer(pointer)?.as_str()?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// The title of the document.
    pub fn title(&self) -> Option<&str> {
        self.text("/info/title")
    }

    /// The absolute URLs of the servers of its operations, each once.
    pub fn servers(&self) -> Vec<String> {
        let mut servers: Vec<_> =
            self.operations().iter().filter_map(|one| self.server_of(one)).collect();
        servers.sort_unstable();
        servers.dedup();
        servers
    }

    /// The absolute URL of the server of all operations that name no other.
    pub(super) fn server(&self) -> Option<String> {
        self.first_server(None, &[])
    }

    /// The absolute URL of an operation's server.
    pub(super) fn server_of(&self, operation: &Outline<'_>) -> Option<String> {
        let servers = [operation.operation, operation.item].map(|one| one.get("servers"));
        self.first_server(operation.operation.get("schemes"), &servers)
    }

    /// The first absolute URL of these lists, or of the document; of Swagger 2.0, with a scheme of
    /// `schemes`.
    fn first_server(&self, schemes: Option<&Value>, servers: &[Option<&Value>]) -> Option<String> {
        let root = self.root();
        if self.version == Version::Swagger2 {
            let said = |key: &str| root.get(key).and_then(Value::as_str);
            let schemes = schemes.or_else(|| root.get("schemes")).and_then(Value::as_array);
            let has = |scheme: &str| schemes.is_some_and(|all| all.iter().any(|one| one == scheme));
            let scheme = if has("http") && !has("https") { "http" } else { "https" };
            return Some(format!(
                "{scheme}://{}{}",
                said("host")?,
                said("basePath").unwrap_or_default()
            ));
        }
        let of = |map: Option<&Value>| {
            let server = map?.as_array()?.first()?;
            let mut url = server.get("url")?.as_str()?.to_owned();
            for (name, variable) in
                server.get("variables").and_then(Value::as_object).into_iter().flatten()
            {
                let default = variable.get("default");
                let default = default.and_then(Value::as_str).unwrap_or_default();
                url = url.replace(&format!("{{{name}}}"), default);
            }
            url.contains("://").then_some(url)
        };
        let all = servers.iter().copied().chain([root.get("servers")]);
        all.into_iter().find_map(of)
    }

    /// The path of its server, where the document says no more than that.
    pub fn base_path(&self) -> &str {
        let pointer = match self.version {
            Version::Swagger2 => "/basePath",
            Version::V3_0 | Version::V3_1 => "/servers/0/url",
        };
        self.text(pointer).unwrap_or("/")
    }

    /// Whether some operation has to be called with a secret.
    pub fn needs_secret(&self) -> bool {
        let needs = |security: Option<&Value>| {
            let all = security.and_then(Value::as_array);
            let is_needed = |one: &Value| one.as_object().is_some_and(|one| !one.is_empty());
            all.is_some_and(|all| !all.is_empty() && all.iter().all(is_needed))
        };
        let general = self.root.get("security");
        self.operations().iter().any(|one| needs(one.operation.get("security").or(general)))
    }

    /// The target of a local reference: `#/components/schemas/Order`.
    pub(super) fn target(&self, reference: &str) -> Option<&Value> {
        let pointer = percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
        self.root.pointer(&pointer)
    }

    /// The value itself, or the end of its chain of references.
    ///
    /// # Errors
    /// The reference that leads out of the document, or nowhere.
    pub(super) fn resolved<'d>(&'d self, value: &'d Value) -> Result<&'d Value, String> {
        let mut value = value;
        for _ in 0..LONGEST_CHAIN {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else {
                return Ok(value);
            };
            value = self.target(reference).ok_or_else(|| unresolved(reference))?;
        }
        Err("its references lead to one another".to_owned())
    }

    /// All operations, in the order of the document.
    pub fn operations(&self) -> Vec<Outline<'_>> {
        let mut found = Vec::new();
        let paths = self.root.get("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten() {
            let resolved = self.resolved(item).ok().and_then(Value::as_object);
            let Some(item) = resolved.filter(|_| path.starts_with('/')) else { continue };
            for (key, method) in METHODS {
                let Some(operation) = item.get(key).and_then(Value::as_object) else { continue };
                let tags = operation.get("tags").and_then(Value::as_array);
                let id = operation.get("operationId").and_then(Value::as_str).map(str::trim);
                found.push(Outline {
                    id: id.filter(|id| !id.is_empty()),
                    method,
                    path,
                    tags: tags.into_iter().flatten().filter_map(Value::as_str).collect(),
                    item,
                    operation,
                });
            }
        }
        found
    }

    /// Parts that its author wrote twice, or in vain: each as the end of a sentence about the document, with help.
    pub(super) fn flaws(&self, operations: &[Outline<'_>]) -> Vec<(String, &'static str)> {
        let mut flaws = Vec::new();
        let all = |names: &[String]| {
            let shown = suggest::quoted(names.iter().map(String::as_str).take(yaml::MOST_REPEATED));
            match names.len().saturating_sub(yaml::MOST_REPEATED) {
                0 => shown,
                more => format!("{shown} and {more} more"),
            }
        };
        if !self.repeated.is_empty() {
            let message =
                format!("has keys that occur twice in an object: {}", all(&self.repeated));
            flaws.push((message, "the last one counts; remove the others"));
        }
        let mut lost: [Vec<String>; LOST.len()] = Default::default();
        let paths = self.root.get("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten().filter(|(path, _)| !path.starts_with("x-"))
        {
            self.add_lost(path, item, &mut lost);
        }
        for (names, (what, help)) in lost.iter().zip(LOST).filter(|(names, _)| !names.is_empty()) {
            flaws.push((format!("has {what}: {}", all(names)), help));
        }
        let twice = self.parameters_twice(operations);
        if !twice.is_empty() {
            let message = format!("has parameters more than once in a list: {}", all(&twice));
            flaws.push((message, "the last one of a name and place counts; remove the others"));
        }
        let mut by_id: HashMap<&str, Vec<String>> = HashMap::new();
        let mut by_path: HashMap<String, Vec<String>> = HashMap::new();
        for one in operations {
            let shown = format!("{} {}", one.method, one.path);
            if let Some(id) = one.id {
                by_id.entry(id).or_default().push(shown.clone());
            }
            by_path.entry(without_names(&shown)).or_default().push(shown);
        }
        let mut twice: Vec<_> = by_id.into_iter().filter(|(_, all)| all.len() > 1).collect();
        twice.sort_unstable();
        for (id, operations) in twice.iter().take(yaml::MOST_REPEATED) {
            let (id, operations) = (suggest::quoted([*id]), all(operations));
            let message = format!("has the operationId {id} more than once: {operations}");
            flaws.push((message, "their tools have names with a digest; give each its own id"));
        }
        let mut same: Vec<_> = by_path.into_values().filter(|all| all.len() > 1).collect();
        same.sort_unstable();
        for operations in same.iter().take(yaml::MOST_REPEATED) {
            let message = format!("has one operation more than once: {}", all(operations));
            flaws.push((message, "their paths differ only in the names of places; remove one"));
        }
        flaws
    }

    /// Adds the parts of a path that become no operations to the lists of the reasons.
    fn add_lost(&self, path: &str, item: &Value, lost: &mut [Vec<String>; LOST.len()]) {
        let [paths, methods, texts, keys, beside] = lost;
        let resolved = self.resolved(item).ok().and_then(Value::as_object);
        let Some(fields) = resolved.filter(|_| path.starts_with('/')) else {
            return paths.push(path.to_owned());
        };
        let named = |key: &str| format!("{} {path}", key.to_uppercase());
        let is_method = |key: &str| METHODS.iter().any(|(method, _)| *method == key);
        for (key, value) in fields {
            let is_method = is_method(key);
            match key.as_str() {
                "trace" => methods.push(named(key)),
                _ if (is_method || key == "query") && !value.is_object() => texts.push(named(key)),
                _ if is_method || ITEM_KEYS.contains(&key.as_str()) || key.starts_with("x-") => {}
                _ => keys.push(format!("{key} {path}")),
            }
        }
        let own = item.as_object().filter(|own| own.contains_key("$ref"));
        let operations = own.into_iter().flatten().filter(|(key, _)| is_method(key));
        beside.extend(operations.map(|(key, _)| named(key)));
    }

    /// The parameters of which a list has several.
    fn parameters_twice(&self, operations: &[Outline<'_>]) -> Vec<String> {
        let (mut twice, mut known) = (Vec::new(), HashSet::new());
        for one in operations {
            let of_operation = format!("{} {}", one.method, one.path);
            for (map, owner) in [(one.item, one.path), (one.operation, &*of_operation)] {
                let mut seen = HashSet::new();
                for parameter in
                    map.get("parameters").and_then(Value::as_array).into_iter().flatten()
                {
                    let resolved = self.resolved(parameter).ok().and_then(Value::as_object);
                    let Some((name, place)) = resolved.and_then(parameter_key) else { continue };
                    if !seen.insert((name.clone(), place)) {
                        let shown = format!("{name} in {place} of {owner}");
                        // Several operations of a path have its list.
                        if known.insert(shown.clone()) {
                            twice.push(shown);
                        }
                    }
                }
            }
        }
        twice
    }

    /// The operations with methods that are newer than OpenAPI 3.1: `QUERY /search`.
    pub(super) fn other_operations(&self) -> Vec<String> {
        let paths = self.root.get("paths").and_then(Value::as_object);
        let of_item = |(path, item): (&String, &Value)| {
            let item = self.resolved(item).ok().and_then(Value::as_object)?;
            let others = item.get("additionalOperations").and_then(Value::as_object);
            let query = item.get_key_value("query");
            let all = query.into_iter().chain(others.into_iter().flatten());
            let all = all.filter(|(_, operation)| operation.is_object());
            Some(all.map(|(key, _)| format!("{} {path}", key.to_uppercase())).collect::<Vec<_>>())
        };
        paths.into_iter().flatten().filter_map(of_item).flatten().collect()
    }

    /// The names of the tools of operations, each unique and valid for models. `start` is the
    /// prefix of all. Equal names, and those that are too long, end in a digest of method and path.
    ///
    /// A name depends only on its operation and on the ones of the same name.
    pub fn names(operations: &[Outline<'_>], start: &str) -> Vec<Option<ToolName>> {
        let plain: Vec<_> = operations.iter().map(Outline::plain_name).collect();
        let mut counts = HashMap::<_, usize>::new();
        for name in &plain {
            *counts.entry(name.as_str()).or_default() += 1;
        }
        let mut taken = HashSet::new();
        let named = operations.iter().zip(&plain).map(|(operation, name)| {
            let is_unique = counts.get(name.as_str()) == Some(&1);
            let chosen = ToolName::new(format!("{start}{name}")).ok().filter(|_| is_unique);
            let chosen = chosen.or_else(|| {
                let Outline { method, path, .. } = operation;
                ToolName::fitted(start, "openapi", &format!("{name} {method} {path}")).ok()
            });
            chosen.filter(|name| taken.insert(name.clone()))
        });
        named.collect()
    }
}

impl Outline<'_> {
    /// The name before it is made unique: the `operationId`, or method and path.
    fn plain_name(&self) -> String {
        let of_path = || format!("{}_{}", self.method.as_str().to_lowercase(), self.path);
        let mut name = String::new();
        for c in self.id.map_or_else(of_path, str::to_owned).chars() {
            let is_plain = c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if is_plain && !(c == '_' && name.ends_with('_')) {
                name.push(c);
            } else if !name.ends_with('_') {
                name.push('_');
            }
        }
        let name = name.trim_matches('_');
        match name {
            "" => "operation".to_owned(),
            name => name.to_owned(),
        }
    }
}

/// An operation without the names of the places in its path.
fn without_names(operation: &str) -> String {
    let mut pieces = operation.split('{');
    let mut same = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        same.push_str("{}");
        same.push_str(piece.split_once('}').map_or(piece, |(_, after)| after));
    }
    same
}

/// The name and the place of a parameter, of which an operation has one each. Names of headers ignore case.
pub(super) fn parameter_key(parameter: &Map<String, Value>) -> Option<(Cow<'_, str>, &str)> {
    let said = |key: &str| parameter.get(key).and_then(Value::as_str);
    let (name, place) = (said("name")?, said("in")?);
    let is_header = place == "header";
    Some((if is_header { name.to_ascii_lowercase().into() } else { name.into() }, place))
}

pub(super) fn unresolved(reference: &str) -> String {
    let shown: String = reference.chars().take(120).collect();
    if reference.starts_with('#') {
        format!("the reference `{}` leads nowhere", shown.escape_debug())
    } else {
        format!(
            "the reference `{}` leads out of the document; bundle its files into one",
            shown.escape_debug()
        )
    }
}

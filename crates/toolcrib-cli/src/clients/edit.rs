//! One entry of a configuration file, written in place: comments and layout stay.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstNode, CstObject, CstRootNode},
};
use serde::Serialize as _;
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, InlineTable, Item, Table, Value as TomlValue, ser::ValueSerializer};

use super::Format;

/// A file that cannot be edited. Each message ends a sentence about the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    #[error("is not valid: {0}")]
    Syntax(String),
    #[error("has a key `{key}` that is not a table of servers")]
    NotATable { key: String },
    #[error("has the entry `{name}` already")]
    Exists { name: String },
    #[error("cannot be changed in one place only; it may have a key twice")]
    Elsewhere,
}

/// The text with an entry below a key; the entry of this name, if there is one.
pub(crate) fn with_entry(
    format: Format,
    text: &str,
    key: &str,
    name: &str,
    entry: &Value,
) -> Result<(String, Option<Value>), EditError> {
    let old = values(format, text)?;
    let known = old.get(key).and_then(|servers| servers.get(name)).cloned();
    let new = match format {
        Format::Json => {
            let (mark, body) = without_mark(text);
            let root = json(body)?;
            let servers = match root.value() {
                None => root.object_value_or_create(),
                Some(value) => value.as_object(),
            };
            let servers = servers.and_then(|root| root.object_value_or_create(key));
            let servers = servers.ok_or_else(|| EditError::NotATable { key: key.to_owned() })?;
            match servers.get(name) {
                Some(property) => property.set_value(input(entry)),
                None => drop(servers.append(name, input(entry))),
            }
            match root.to_string() {
                new if body.trim().is_empty() => format!("{mark}{}\n", new.trim()),
                new => format!("{mark}{new}"),
            }
        }
        Format::Toml => {
            let mut document = toml(text)?;
            let is_new = document.get(key).is_none();
            let servers = document.entry(key).or_insert_with(|| Item::Table(Table::new()));
            let entry = value(entry)?;
            match servers {
                Item::Table(servers) => {
                    if is_new {
                        servers.set_implicit(true);
                    }
                    servers.insert(name, item(entry));
                }
                Item::Value(TomlValue::InlineTable(servers)) => put_inline(servers, name, entry),
                _ => return Err(EditError::NotATable { key: key.to_owned() }),
            }
            as_before(text, document.to_string())
        }
    };
    let mut expected = old;
    let place = expected.as_object_mut().and_then(|root| {
        let servers = root.entry(key).or_insert_with(|| Value::Object(Map::new()));
        servers.as_object_mut()
    });
    place.map(|servers| servers.insert(name.to_owned(), entry.clone()));
    check(format, &new, &expected)?;
    Ok((new, known))
}

/// The text without an entry, and the entry; `None` if it has none.
pub(crate) fn without_entry(
    format: Format,
    text: &str,
    key: &str,
    name: &str,
) -> Result<Option<(String, Value)>, EditError> {
    let mut expected = values(format, text)?;
    let servers = expected.get_mut(key).and_then(Value::as_object_mut);
    let Some(known) = servers.and_then(|servers| servers.shift_remove(name)) else {
        return Ok(None);
    };
    let new = match format {
        Format::Json => {
            let (mark, body) = without_mark(text);
            let root = json(body)?;
            let servers = root.object_value().and_then(|root| root.object_value(key));
            let property = servers.and_then(|servers| servers.get(name));
            property.ok_or(EditError::Elsewhere)?.remove();
            format!("{mark}{root}")
        }
        Format::Toml => {
            let mut document = toml(text)?;
            let removed = match document.get_mut(key) {
                Some(Item::Value(TomlValue::InlineTable(servers))) => take_inline(servers, name),
                Some(Item::Table(servers)) => servers.remove(name),
                _ => None,
            };
            removed.ok_or(EditError::Elsewhere)?;
            // A table without its header in the file is gone with its last entry.
            let is_empty = |item: &Item| {
                item.as_table().is_some_and(|table| table.is_empty() && table.is_implicit())
            };
            if document.get(key).is_some_and(is_empty) {
                document.remove(key);
            }
            as_before(text, document.to_string())
        }
    };
    let is_gone = values(format, &new)?.get(key).is_none();
    if is_gone && let Some(root) = expected.as_object_mut() {
        root.shift_remove(key);
    }
    check(format, &new, &expected)?;
    Ok(Some((new, known)))
}

/// The text to show: texts outside an entry, which may be secrets, are replaced by `…`.
pub(crate) fn masked(format: Format, text: &str, key: &str, name: &str) -> String {
    match format {
        Format::Json => {
            let (_, body) = without_mark(text);
            let Ok(root) = json(body) else { return String::new() };
            if let Some(value) = root.value() {
                mask(&value, &[key, name]);
            }
            root.to_string()
        }
        Format::Toml => {
            let Ok(mut document) = toml(text) else { return String::new() };
            for (known, item) in document.iter_mut() {
                if known.get() != key {
                    mask_toml(item);
                    continue;
                }
                let servers =
                    item.as_table_like_mut().into_iter().flat_map(|servers| servers.iter_mut());
                servers
                    .filter(|(known, _)| known.get() != name)
                    .for_each(|(_, item)| mask_toml(item));
            }
            document.to_string()
        }
    }
}

fn mask(node: &CstNode, except: &[&str]) {
    if let Some(text) = node.as_string_lit() {
        text.set_raw_value("\"…\"".to_owned());
    } else if let Some(array) = node.as_array() {
        array.elements().iter().for_each(|item| mask(item, &[""]));
    } else if let Some(object) = node.as_object() {
        mask_object(&object, except);
    }
}

fn mask_object(object: &CstObject, except: &[&str]) {
    for property in object.properties() {
        let name = property.decoded_name().unwrap_or_default();
        let Some(value) = property.value() else { continue };
        match except {
            [last] if *last == name => {}
            [first, rest @ ..] if *first == name => mask(&value, rest),
            _ => mask(&value, &[""]),
        }
    }
}

fn mask_toml(item: &mut Item) {
    if let Some(table) = item.as_table_like_mut() {
        table.iter_mut().for_each(|(_, item)| mask_toml(item));
    } else if let Some(tables) = item.as_array_of_tables_mut() {
        for table in tables.iter_mut() {
            table.iter_mut().for_each(|(_, item)| mask_toml(item));
        }
    } else if item.is_str() || item.is_array() {
        *item = toml_edit::value("…");
    }
}

/// Only the entry may have changed.
fn check(format: Format, new: &str, expected: &Value) -> Result<(), EditError> {
    if values(format, new)? == *expected { Ok(()) } else { Err(EditError::Elsewhere) }
}

fn values(format: Format, text: &str) -> Result<Value, EditError> {
    match format {
        Format::Json => {
            let (_, body) = without_mark(text);
            let value = json(body)?.to_serde_value();
            let value = value.unwrap_or_else(|| Value::Object(Map::new()));
            if value.is_object() {
                Ok(value)
            } else {
                Err(EditError::Syntax("it is not an object in `{…}`".to_owned()))
            }
        }
        Format::Toml => {
            let values = toml_edit::de::from_document(toml(text)?);
            values.map_err(|error| EditError::Syntax(error.to_string()))
        }
    }
}

fn json(text: &str) -> Result<CstRootNode, EditError> {
    let strict = ParseOptions {
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        ..ParseOptions::default()
    };
    CstRootNode::parse(text, &strict).map_err(|error| {
        let (line, column) = (error.line_display(), error.column_display());
        EditError::Syntax(format!("line {line}, column {column}: {}", error.kind()))
    })
}

fn toml(text: &str) -> Result<DocumentMut, EditError> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        EditError::Syntax(format!("line {line}: {}", error.message()))
    })
}

/// The byte order mark that some editors write, and the text after it.
fn without_mark(text: &str) -> (&str, &str) {
    text.strip_prefix('\u{feff}').map_or(("", text), |body| ("\u{feff}", body))
}

/// A new text of TOML with the byte order mark and the line ends of the text before, which the editor of TOML
/// does not keep. A text with both line ends gets those of the editor.
fn as_before(before: &str, new: String) -> String {
    let (mark, body) = without_mark(before);
    let ends = body.matches('\n').count();
    let new = match ends > 0 && body.matches("\r\n").count() == ends {
        true => new.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => new,
    };
    format!("{mark}{new}")
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(entries) => CstInputValue::Object(
            entries.iter().map(|(name, value)| (name.clone(), input(value))).collect(),
        ),
    }
}

/// The entry as a value of TOML.
fn value(entry: &Value) -> Result<TomlValue, EditError> {
    let value = entry.serialize(ValueSerializer::new());
    value.map_err(|error| EditError::Syntax(error.to_string()))
}

/// The entry with its own header, if it is a table.
fn item(entry: TomlValue) -> Item {
    match entry {
        TomlValue::InlineTable(table) => Item::Table(table.into_table()),
        other => Item::Value(other),
    }
}

/// Puts an entry into a table in braces. The text before the closing brace, which belongs to the last
/// entry, follows the new one.
fn put_inline(servers: &mut InlineTable, name: &str, entry: TomlValue) {
    if let Some(known) = servers.get_mut(name) {
        let decor = known.decor().clone();
        *known = entry;
        *known.decor_mut() = decor;
        return;
    }
    let end = replace_end(servers, String::new());
    servers.insert(name, entry.decorated(" ", end));
}

/// Takes an entry out of a table in braces. The text before the closing brace stays.
fn take_inline(servers: &mut InlineTable, name: &str) -> Option<Item> {
    let end = replace_end(servers, String::new());
    let removed = servers.remove(name);
    replace_end(servers, end);
    removed.map(Item::Value)
}

/// Replaces the text after the last entry, and returns the one before.
fn replace_end(servers: &mut InlineTable, end: String) -> String {
    let Some((_, last)) = servers.iter_mut().last() else { return String::new() };
    let before = last.decor().suffix().and_then(|suffix| suffix.as_str()).unwrap_or_default();
    let before = before.to_owned();
    last.decor_mut().set_suffix(end);
    before
}

//! The kinds `json` and `jsonl`. A document is never in memory as a whole: queries stream through
//! it and keep only the shown parts.
//!
//! ```text
//! walk.rs       down a JSON Pointer, and what is done where it ends
//! each.rs       the items that an answer shows
//! items.rs      the items of an array one after the other, the keys of objects
//! bounded.rs    values of a size that memory has room for
//! path.rs       JSONPath
//! records.rs    documents and records as they are read, and what is wrong with them
//! ```

/// The visits of values other than arrays and objects, with one outcome for all.
macro_rules! scalars {
    ($self:ident => $outcome:expr) => {
        scalars!($self => $outcome; visit_bool: bool, visit_i64: i64, visit_u64: u64);
        scalars!($self => $outcome; visit_f64: f64, visit_str: &str);

        fn visit_unit<F: Error>($self) -> Result<Self::Value, F> {
            $outcome
        }
    };
    ($self:ident => $outcome:expr; $($visit:ident: $value:ty),*) => {
        $(fn $visit<F: Error>($self, _: $value) -> Result<Self::Value, F> {
            $outcome
        })*
    };
}

mod bounded;
mod item_pager;
mod items;
mod path;
mod records;
mod walk;

use serde::{Deserialize, de::DeserializeSeed};
use serde_json::{Deserializer, Value, json};
use toolcrib_core::ToolError;

use self::{
    bounded::Budget,
    item_pager::ItemPager,
    items::{EachItem, ItemsSink, KeysSink},
    path::{LONGEST_PATH, Path},
    records::{CancellableStream, InvalidLines, add, broken, each_record},
    walk::{PathSeed, ShapeSink, Sink, ValueSink, place, steps},
};
use super::{
    arguments,
    condition::{OPS, Op, there},
    kind::{ArtifactKind, ContentHead, Query, QueryRequest},
    limit_properties,
};
use crate::page::{Answer, Items};

/// The maximum size of a document for a path: number of values, and bytes of text.
const DOCUMENT: (usize, usize) = (500_000, 16 * 1024 * 1024);

/// The default number of items per page.
const ITEMS: u64 = 100;

/// JSON, as one document (`json`) or one per line (`jsonl`). Both have the same queries; a `jsonl`
/// is treated as an array of its records.
///
/// Numbers are those of [`Value`]: for a number with more than 64 bits or 17 digits, answers show
/// the nearest one, and `artifact_read` shows the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json {
    lines: bool,
}

impl Json {
    /// The kind of a text with one document.
    pub fn document() -> Self {
        Self { lines: false }
    }

    /// One document per line.
    pub fn lines() -> Self {
        Self { lines: true }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PointerArgs {
    #[serde(default)]
    at: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Slice {
    #[serde(default)]
    at: String,
    #[serde(default)]
    start: u64,
    end: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pluck {
    #[serde(default)]
    at: String,
    fields: Vec<String>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    #[serde(default)]
    at: String,
    field: String,
    op: Op,
    #[serde(default, deserialize_with = "there")]
    value: Option<Value>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonPathArgs {
    path: String,
    #[serde(default)]
    at: String,
    limit: Option<u64>,
}

impl ArtifactKind for Json {
    fn name(&self) -> &'static str {
        if self.lines { "jsonl" } else { "json" }
    }

    fn family(&self) -> &'static str {
        "json"
    }

    fn detect(&self, start: &ContentHead<'_>) -> bool {
        if self.lines {
            let mut records = start.lines().filter(|line| !line.trim().is_empty());
            let mut whole =
                records.by_ref().take(2).filter(|line| is_json(line) == JsonShape::Whole);
            return whole.by_ref().count() == 2;
        }
        let text = start.text();
        match is_json(text) {
            JsonShape::Whole | JsonShape::Truncated => true,
            // The examined part may end within a character or a number.
            JsonShape::Other => false,
        }
    }

    fn queries(&self) -> Vec<Query> {
        let at = || {
            json!({ "at": {
                "type": "string", "default": "",
                "description": "JSON Pointer to the part to query, such as /rows/0. In jsonl, \
                                the first step is the record, from 0.",
            } })
        };
        let limit = limit_properties;
        vec![
            Query::new("type", "The type, and the number of items or keys.").takes(at()),
            Query::new("keys", "The keys of an object, or of all objects in an array.")
                .takes(at())
                .paged(),
            Query::new("length", "The number of items, keys, records or characters.").takes(at()),
            Query::new("get", "The value at a place.").takes(at()).paged(),
            Query::new("slice", "Items of an array, from `start` to `end`, exclusive.")
                .takes(at())
                .takes(json!({
                    "start": { "type": "integer", "minimum": 0, "default": 0 },
                    "end": { "type": "integer", "minimum": 0 },
                }))
                .paged(),
            Query::new("pluck", "Some fields of each item of an array.")
                .takes(at())
                .takes(json!({ "fields": {
                    "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 32,
                    "description": "Names, or JSON Pointers from the item on.",
                } }))
                .takes(limit())
                .requires(["fields"])
                .paged(),
            Query::new("filter", "The items of an array whose field matches a comparison.")
                .takes(at())
                .takes(json!({
                    "field": {
                        "type": "string",
                        "description": "A name, or a JSON Pointer from the item on; empty is the \
                                        item itself.",
                    },
                    "op": { "enum": OPS },
                    "value": {
                        "description": "The value to compare with; required by all but `exists`.",
                    },
                }))
                .takes(limit())
                .requires(["field", "op"])
                .paged(),
            Query::new("path", "The matches of a JSONPath (RFC 9535). In jsonl, in each record.")
                .takes(json!({ "path": {
                    "type": "string", "maxLength": LONGEST_PATH,
                    "description": "Such as $.rows[?@.total > 100].id",
                } }))
                .takes(at())
                .takes(limit())
                .requires(["path"])
                .paged(),
        ]
    }

    fn query(&self, asked: &QueryRequest<'_>) -> Result<Answer, ToolError> {
        match asked.query {
            "type" => {
                let PointerArgs { at } = arguments(asked)?;
                self.shape(asked, &at).map(|(shape, _)| Answer::text(shape))
            }
            "length" => {
                let PointerArgs { at } = arguments(asked)?;
                match self.shape(asked, &at)? {
                    (_, Some(length)) => Ok(Answer::text(length.to_string())),
                    (shape, None) => {
                        Err(ToolError::input_invalid(format!("a {shape} has no length")))
                    }
                }
            }
            "keys" => self.keys(asked),
            "get" => self.get(asked),
            "slice" => {
                let Slice { at, start, end } = arguments(asked)?;
                let end = end.unwrap_or(u64::MAX);
                let mut each = ItemPager::new(asked, None, |_, item| Some(item.to_string()));
                each.range = start..end.max(start);
                self.items(asked, &at, each)
            }
            "pluck" => {
                let Pluck { at, fields, limit } = arguments(asked)?;
                let each = ItemPager::new(asked, limit, |_, item| {
                    let found = fields.iter().map(|name| {
                        (name.clone(), field(item, name).cloned().unwrap_or(Value::Null))
                    });
                    Some(Value::Object(found.collect()).to_string())
                });
                self.items(asked, &at, each)
            }
            "filter" => {
                let Filter { at, field: name, op, value, limit } = arguments(asked)?;
                let value = op.operand("value", value)?;
                let each = ItemPager::new(asked, limit, |number, item| {
                    let found = field(item, &name);
                    op.matches(found, &value).then(|| format!("{number}: {item}"))
                });
                self.items(asked, &at, each)
            }
            "path" => self.path(asked),
            _ => Err(asked.unknown()),
        }
    }
}

impl Json {
    /// A description of the value at a place, and its length.
    fn shape(self, asked: &QueryRequest<'_>, at: &str) -> Result<(String, Option<u64>), ToolError> {
        let steps = steps(at)?;
        if self.lines && steps.is_empty() {
            let mut records = 0;
            each_record(asked, |_, _| {
                records += 1;
                Ok(true)
            })?;
            return Ok((format!("jsonl of {records} records"), Some(records)));
        }
        let mut sink = ShapeSink::default();
        self.descend(asked, &steps, &mut sink)?;
        let shape = sink.0.ok_or_else(not_found)?;
        let length = match shape {
            walk::Shape::String { chars: length }
            | walk::Shape::Array { items: length }
            | walk::Shape::Object { keys: length } => Some(length),
            _ => None,
        };
        Ok((shape.to_string(), length))
    }

    fn keys(self, asked: &QueryRequest<'_>) -> Result<Answer, ToolError> {
        let PointerArgs { at } = arguments(asked)?;
        let steps = steps(&at)?;
        let mut sink = KeysSink::default();
        let mut broken_lines = InvalidLines::default();
        if self.lines && steps.is_empty() {
            each_record(asked, |line, record| {
                let mut deserializer = Deserializer::from_slice(record);
                let taken = sink.take(&mut deserializer).and_then(|()| deserializer.end());
                if let Err(error) = taken {
                    broken_lines.add(line, &error);
                }
                Ok(true)
            })?;
        } else {
            self.descend(asked, &steps, &mut sink)?;
        }
        if !sink.is_object {
            return Err(ToolError::input_invalid("the value is not an object, so it has no keys"));
        }
        let mut items = Items::new(asked.page, u64::MAX);
        for key in &sink.keys {
            items.push(key);
        }
        let mut answer = items.answer("keys");
        if let Some(key) = sink.twice {
            add(&mut answer, format!("`{key}` appears twice in one object; the last one counts"));
        }
        if sink.is_cut {
            add(&mut answer, format!("more than these {} keys exist", sink.keys.len()));
        }
        broken_lines.tell(&mut answer);
        Ok(answer)
    }

    fn get(self, asked: &QueryRequest<'_>) -> Result<Answer, ToolError> {
        let PointerArgs { at } = arguments(asked)?;
        let steps = steps(&at)?;
        if self.lines && steps.is_empty() {
            let each = ItemPager::new(asked, None, |_, item| Some(item.to_string()));
            return self.items(asked, &at, each);
        }
        let value = self.value(asked, &steps, items::ITEM)?;
        let text = match value {
            Value::String(text) => text,
            value => serde_json::to_string_pretty(&value).unwrap_or_else(|_| value.to_string()),
        };
        let mut items = Items::new(asked.page, u64::MAX);
        for line in text.split('\n') {
            items.push(line);
        }
        Ok(items.answer("lines of the value"))
    }

    /// Shows items of an array.
    fn items<F>(
        self,
        asked: &QueryRequest<'_>,
        at: &str,
        mut each: ItemPager<F>,
    ) -> Result<Answer, ToolError>
    where
        F: Fn(u64, &Value) -> Option<String>,
    {
        let steps = steps(at)?;
        if self.lines && steps.is_empty() {
            let mut broken_lines = InvalidLines::default();
            let mut number = 0;
            each_record(asked, |line, record| {
                if each.wants(number) {
                    match serde_json::from_slice(record) {
                        Ok(item) => each.item(number, &item),
                        Err(error) => {
                            broken_lines.add(line, &error);
                            each.skip();
                        }
                    }
                }
                number += 1;
                Ok(!each.is_done())
            })?;
            let mut answer = each.answer();
            broken_lines.tell(&mut answer);
            return Ok(answer);
        }
        let mut sink = ItemsSink::new(&mut each, steps.is_empty());
        let outcome = self.descend(asked, &steps, &mut sink);
        let (is_other, too_large, is_done) = (sink.is_other, sink.too_large, sink.each.is_done());
        if let Some(item) = too_large {
            return Err(ToolError::input_invalid(format!(
                "item {item} is too large to be read as a whole; request a part of it with \
                 `at`"
            )));
        }
        if !(is_done && steps.is_empty()) {
            outcome?;
        }
        if is_other {
            let (shape, _) = self.shape(asked, at)?;
            return Err(ToolError::input_invalid(format!(
                "the value is not an array but: {shape}; point to one with `at`"
            )));
        }
        Ok(each.answer())
    }

    fn path(self, asked: &QueryRequest<'_>) -> Result<Answer, ToolError> {
        let JsonPathArgs { path, at, limit } = arguments(asked)?;
        let path = Path::parse(&path)?;
        let steps = steps(&at)?;
        let mut found = Items::new(asked.page, limit.unwrap_or(ITEMS));
        let push = |document: &Value, found: &mut Items| {
            for value in path.query(document)? {
                if found.is_full() {
                    break;
                }
                // Only shown items are serialized.
                if found.wants_next() {
                    found.push(&value.to_string());
                } else {
                    found.skip(1);
                }
            }
            Ok::<_, ToolError>(())
        };
        if self.lines && steps.is_empty() {
            let mut broken_lines = InvalidLines::default();
            each_record(asked, |line, record| {
                match serde_json::from_slice(record) {
                    Ok(document) => push(&document, &mut found)?,
                    Err(error) => broken_lines.add(line, &error),
                }
                Ok(!found.is_full())
            })?;
            let mut answer = found.answer("matches");
            broken_lines.tell(&mut answer);
            return Ok(answer);
        }
        push(&self.value(asked, &steps, DOCUMENT)?, &mut found)?;
        Ok(found.answer("matches"))
    }

    /// The value at a place, unless it is too large.
    fn value(
        self,
        asked: &QueryRequest<'_>,
        steps: &[String],
        (values, bytes): (usize, usize),
    ) -> Result<Value, ToolError> {
        let budget = Budget::new(values, bytes);
        let mut sink = ValueSink { budget: &budget, value: None };
        let outcome = self.descend(asked, steps, &mut sink);
        if budget.is_over() {
            return Err(ToolError::input_invalid(format!(
                "the value has more than {values} values or {bytes} bytes of text, too much to be \
                 read as a whole; point to a part of it with `at`, or use `slice`, `pluck` or \
                 `filter`"
            )));
        }
        outcome?;
        sink.value.ok_or_else(not_found)
    }

    /// Descends to a place, and passes its value to the sink.
    fn descend<S: Sink>(
        self,
        asked: &QueryRequest<'_>,
        steps: &[String],
        sink: &mut S,
    ) -> Result<(), ToolError> {
        let found = if self.lines {
            let [record, rest @ ..] = steps else { return Err(not_found()) };
            let wanted = place(record).ok_or_else(not_found)?;
            let (mut number, mut found) = (0, false);
            each_record(asked, |line, record| {
                if number == wanted {
                    let mut deserializer = Deserializer::from_slice(record);
                    let descend = PathSeed { steps: rest, sink: &mut *sink };
                    found = descend
                        .deserialize(&mut deserializer)
                        .and_then(|found| deserializer.end().map(|()| found))
                        .map_err(|error| broken(&error, line))?;
                }
                number += 1;
                Ok(number <= wanted)
            })?;
            found
        } else {
            let mut deserializer = Deserializer::from_reader(CancellableStream::new(asked)?);
            let found = PathSeed { steps, sink }
                .deserialize(&mut deserializer)
                .and_then(|found| deserializer.end().map(|()| found));
            asked.check_cancelled()?;
            found.map_err(|error| broken(&error, 0))?
        };
        if found { Ok(()) } else { Err(not_found()) }
    }
}

/// A field of an item: by its name, or by a JSON Pointer from the item on. Empty is the item
/// itself.
fn field<'v>(item: &'v Value, field: &str) -> Option<&'v Value> {
    if field.is_empty() || field.starts_with('/') { item.pointer(field) } else { item.get(field) }
}

fn not_found() -> ToolError {
    ToolError::input_invalid("no value at that place; inspect with `type` and `keys`")
}

#[derive(Debug, PartialEq, Eq)]
enum JsonShape {
    Whole,
    Truncated,
    Other,
}

/// Whether a text is an object or an array, or the beginning of one.
fn is_json(text: &str) -> JsonShape {
    if !text.trim_start().starts_with(['{', '[']) {
        return JsonShape::Other;
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => JsonShape::Whole,
        Err(error) if error.is_eof() => JsonShape::Truncated,
        Err(_) => JsonShape::Other,
    }
}

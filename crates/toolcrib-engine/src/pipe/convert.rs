//! Reads values that a model wrote as text: `"5"` for an integer, `"[1]"` for an array.
//!
//! A text is read only where the schema permits no text, and only if it is exactly the JSON of a
//! permitted type. Texts within a text that was read stay as they are.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::__internal::{AcceptedTypes, JsonType, PlainJson, ValueStep, shortened};

use super::arguments::MOST_VALUES;

/// Maximum number of places that are listed.
const MOST_LISTED: usize = 16;

/// Whether a text looks like the JSON of another type. Cheap, because every text is asked.
pub(super) fn may_be_json(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    match (text.as_bytes().first(), text.as_bytes().last()) {
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) => true,
        (Some(b'-' | b'0'..=b'9'), Some(b'0'..=b'9')) => true,
        (Some(b't' | b'f' | b'n'), _) => matches!(text, "true" | "false" | "null"),
        _ => false,
    }
}

/// Reads the texts in arguments. Returns the places of the first ones as JSON Pointers.
pub(super) fn convert(args: &mut Value, schema: &Value) -> Vec<Arc<str>> {
    let mut conversion = Conversion { types: AcceptedTypes::of(schema), converted: Vec::new() };
    conversion.visit(args, &Place::Root);
    conversion.converted
}

struct Conversion<'s> {
    types: AcceptedTypes<'s>,
    converted: Vec<Arc<str>>,
}

impl Conversion<'_> {
    /// Recursive up to the limited depth of the arguments.
    fn visit(&mut self, value: &mut Value, place: &Place<'_>) {
        match value {
            Value::String(text) if may_be_json(text) => {
                if let Some(read) = self.read(text, &place.path()) {
                    *value = read;
                    if self.converted.len() < MOST_LISTED {
                        self.converted.push(place.pointer());
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.visit(item, &Place::Part(place, ValueStep::Index(at)));
                }
            }
            Value::Object(map) => {
                for (key, value) in map.iter_mut() {
                    self.visit(value, &Place::Part(place, ValueStep::Key(key)));
                }
            }
            _ => {}
        }
    }

    fn read(&self, text: &str, path: &[ValueStep<'_>]) -> Option<Value> {
        if self.types.may_be(path, JsonType::String) {
            return None;
        }
        let read = PlainJson::read_at_most(MOST_VALUES, text.as_bytes()).ok()?;
        self.types.may_be(path, JsonType::of(&read)).then_some(read)
    }
}

/// The place of a value in the arguments.
enum Place<'p> {
    Root,
    Part(&'p Self, ValueStep<'p>),
}

impl<'p> Place<'p> {
    fn path(&self) -> Vec<ValueStep<'p>> {
        let (mut path, mut place) = (Vec::new(), self);
        while let Self::Part(parent, step) = place {
            path.push(*step);
            place = parent;
        }
        path.reverse();
        path
    }

    fn pointer(&self) -> Arc<str> {
        let mut pointer = String::new();
        for step in self.path() {
            pointer.push('/');
            match step {
                ValueStep::Index(at) => pointer.push_str(&at.to_string()),
                ValueStep::Key(key) => {
                    pointer.push_str(&shortened(key).replace('~', "~0").replace('/', "~1"));
                }
            }
        }
        pointer.into()
    }
}

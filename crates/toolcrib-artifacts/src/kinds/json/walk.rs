//! Resolves a JSON Pointer in streamed JSON, and passes the value to a sink.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use toolcrib_core::ToolError;

use super::bounded::{BoundedSeed, Budget};

/// The maximum number of segments of a pointer.
const MOST_STEPS: usize = 64;

/// The segments of a JSON Pointer (RFC 6901).
pub(super) fn steps(pointer: &str) -> Result<Vec<String>, ToolError> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(ToolError::input_invalid(
            "`at` is a JSON Pointer: it is empty, or begins with `/`, such as /rows/0/name",
        ));
    };
    let steps: Vec<_> =
        rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    if steps.len() > MOST_STEPS {
        let message = format!("`at` has more than {MOST_STEPS} segments");
        return Err(ToolError::input_invalid(message));
    }
    Ok(steps)
}

/// The array index of a segment: without a sign, and without leading zeros.
pub(super) fn place(step: &str) -> Option<u64> {
    let is_plain = step == "0" || !step.starts_with(['0', '+']);
    step.parse().ok().filter(|_| is_plain)
}

/// A consumer of the value that a pointer leads to.
pub(super) trait Sink {
    /// Discards the value: its key appears again.
    fn restart(&mut self);

    /// Processes the value.
    fn take<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error>;
}

/// Descends some segments. Returns whether a value exists there.
pub(super) struct PathSeed<'s, S> {
    pub(super) steps: &'s [String],
    pub(super) sink: &'s mut S,
}

impl<'de, S: Sink> DeserializeSeed<'de> for PathSeed<'_, S> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        match self.steps {
            [] => self.sink.take(deserializer).map(|()| true),
            [step, rest @ ..] => deserializer.deserialize_any(Step { step, rest, sink: self.sink }),
        }
    }
}

struct Step<'s, S> {
    step: &'s str,
    rest: &'s [String],
    sink: &'s mut S,
}

impl<'de, S: Sink> Visitor<'de> for Step<'_, S> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    scalars!(self => Ok(false));

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        let wanted = place(self.step);
        let mut at = 0;
        let mut found = false;
        loop {
            let more = if wanted == Some(at) {
                let descend = PathSeed { steps: self.rest, sink: &mut *self.sink };
                let went = seq.next_element_seed(descend)?;
                found = went == Some(true);
                went.is_some()
            } else {
                seq.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                return Ok(found);
            }
            at += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == self.step {
                self.sink.restart();
                found =
                    map.next_value_seed(PathSeed { steps: self.rest, sink: &mut *self.sink })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// The type and size of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Null,
    Bool,
    Number,
    String { chars: u64 },
    Array { items: u64 },
    Object { keys: u64 },
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("boolean"),
            Self::Number => f.write_str("number"),
            Self::String { chars } => write!(f, "string of {chars} characters"),
            Self::Array { items } => write!(f, "array of {items} items"),
            Self::Object { keys } => write!(f, "object of {keys} keys"),
        }
    }
}

/// Determines the shape of a value. Duplicate keys count twice.
#[derive(Default)]
pub(super) struct ShapeSink(pub(super) Option<Shape>);

impl Sink for ShapeSink {
    fn restart(&mut self) {
        self.0 = None;
    }

    fn take<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        self.0 = Some(deserializer.deserialize_any(ShapeVisitor)?);
        Ok(())
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Shape, E> {
        Ok(Shape::Null)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::Bool)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::Number)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::Number)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::Number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Shape, E> {
        Ok(Shape::String { chars: text.chars().count() as u64 })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
        let mut items = 0;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            items += 1;
        }
        Ok(Shape::Array { items })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut keys = 0;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            keys += 1;
        }
        Ok(Shape::Object { keys })
    }
}

/// Reads the value itself, within a budget.
pub(super) struct ValueSink<'b> {
    pub(super) budget: &'b Budget,
    pub(super) value: Option<Value>,
}

impl Sink for ValueSink<'_> {
    fn restart(&mut self) {
        self.value = None;
    }

    fn take<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        self.value = Some(BoundedSeed(self.budget).deserialize(deserializer)?);
        Ok(())
    }
}

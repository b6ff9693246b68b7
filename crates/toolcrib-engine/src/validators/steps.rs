//! How much work it is to hold one value against a schema, counted before it is done.
//!
//! The count goes the ways of the validator, and takes all of them where the validator may take the
//! first that fits. It stops at its limit, so that it is never more work than what it admits.

use serde_json::{Map, Value};

use super::{
    patterns::Size,
    plan::{Node, Plan},
};

/// How deep subschemas and values may nest together. The validator takes up to 1 KB of stack for each
/// level in a build without optimization, and a thread has 2 MiB.
const DEEPEST: usize = 512;

/// How many bytes of text one step looks at.
const BYTES_IN_STEP: u64 = 64;

/// How often `uniqueItems` may look at one element: short arrays are compared in pairs.
const LOOKS_AT_UNIQUE: u64 = 16;

/// How many steps `multipleOf` takes where a number is not whole: it is divided exactly, and numbers such
/// as 1e-300 have a thousand bits.
const OF_FRACTION: u64 = 1_024;

/// How many subschemas a meta-schema applies to one value, generously.
const IN_META_SCHEMA: u64 = 256;

impl Plan {
    /// The steps that it takes to list all that is wrong with a value; none if there are more than
    /// `limit`, or it nests too deep. One step is one subschema that is held against one value, or work
    /// of about its size. Where each of them reports an error, it takes 1.1 µs and 500 bytes.
    pub(crate) fn steps_to_explain(&self, value: &Value, limit: u64) -> Option<u64> {
        self.count(Meter { plan: self, left: limit, depth: 0, decides: false }, value)
    }

    /// The steps that it takes to decide whether a value fits, likewise, of 10 to 25 ns each. The
    /// validator remembers some results of references that lead back to themselves; which ones depends on
    /// the order in which it compiles, so none are counted as remembered. An alternative ends at a member
    /// that is not the constant it must be, as the type of a block.
    pub(crate) fn steps_to_decide(&self, value: &Value, limit: u64) -> Option<u64> {
        self.count(Meter { plan: self, left: limit, depth: 0, decides: true }, value)
    }

    fn count(&self, mut meter: Meter<'_>, value: &Value) -> Option<u64> {
        let limit = meter.left;
        meter.visit(0, Seen::Value(value))?;
        Some(limit - meter.left)
    }
}

/// The size of a value, in steps of a comparison.
pub(super) fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / BYTES_IN_STEP,
        Value::Array(items) => items.iter().map(size).fold(1, u64::saturating_add),
        Value::Object(map) => map.values().map(|one| 1 + size(one)).fold(1, u64::saturating_add),
        _ => 1,
    }
}

/// A value, or the name of a member.
#[derive(Clone, Copy)]
enum Seen<'v> {
    Value(&'v Value),
    Name(&'v str),
}

struct Meter<'p> {
    plan: &'p Plan,
    left: u64,
    depth: usize,
    /// Whether the validator stops at the first thing that does not fit.
    decides: bool,
}

impl Meter<'_> {
    fn spend(&mut self, steps: u64) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }

    fn visit(&mut self, at: usize, seen: Seen<'_>) -> Option<()> {
        let node = self.plan.nodes.get(at)?;
        self.spend(1 + node.compared)?;
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        if let (true, Seen::Value(Value::Object(map))) = (self.decides, seen)
            && let Some(misfit) = self.misfit(node, map)
        {
            return self.until(node, map, misfit);
        }
        let before = self.left;
        for applied in &node.in_place {
            self.visit(*applied, seen)?;
        }
        let in_place = node.total_in_place.max(before - self.left);
        match seen {
            Seen::Name(text) => self.text(text, node.text_pattern)?,
            Seen::Value(Value::String(text)) => self.text(text, node.text_pattern)?,
            Seen::Value(Value::Array(items)) => {
                for (applied, item) in node.prefix.iter().zip(items) {
                    self.visit(*applied, Seen::Value(item))?;
                }
                for applied in &node.elements {
                    for item in items {
                        self.visit(*applied, Seen::Value(item))?;
                    }
                }
                if node.is_unique {
                    self.spend(LOOKS_AT_UNIQUE.saturating_mul(items.iter().map(size).sum()))?;
                }
                if node.is_unevaluated {
                    self.spend(in_place.saturating_mul(items.len() as u64))?;
                }
            }
            Seen::Value(Value::Object(map)) => {
                self.spend(node.listed)?;
                let looks_at_members = !(node.properties.is_empty()
                    && node.members.is_empty()
                    && node.names.is_empty());
                for (name, member) in map.iter().filter(|_| looks_at_members) {
                    self.spend(1)?;
                    self.text(name, node.name_patterns)?;
                    for applied in &node.names {
                        self.visit(*applied, Seen::Name(name))?;
                    }
                    let named = node.properties.get(name.as_str()).map(|(_, applied)| applied);
                    for applied in named.into_iter().chain(&node.members) {
                        self.visit(*applied, Seen::Value(member))?;
                    }
                }
                if node.is_unevaluated {
                    self.spend(in_place.saturating_mul(map.len() as u64))?;
                }
            }
            Seen::Value(Value::Number(number)) => {
                if node.multiple.is_some_and(|is_whole| !is_whole || number.is_f64()) {
                    self.spend(OF_FRACTION)?;
                }
            }
            Seen::Value(_) => {}
        }
        if let (1.., Seen::Value(value)) = (node.meta_schemas, seen) {
            let steps = IN_META_SCHEMA.saturating_mul(node.meta_schemas);
            self.spend(steps.saturating_mul(size(value)))?;
        }
        self.depth -= 1;
        Some(())
    }

    /// The first member that is not the constant that it must be: its place in the value and among the
    /// properties.
    fn misfit(&self, node: &Node, map: &Map<String, Value>) -> Option<(usize, usize)> {
        map.iter().enumerate().find_map(|(at, (name, member))| {
            let (place, applied) = node.properties.get(name.as_str())?;
            let constant = self.plan.nodes.get(*applied)?.constant.as_deref()?;
            (member.as_str() != Some(constant)).then_some((at, *place))
        })
    }

    /// An object that does not fit for one member: the validator looks at members in their order or in
    /// that of the properties, and at nothing else before.
    fn until(
        &mut self,
        node: &Node,
        map: &Map<String, Value>,
        (at, place): (usize, usize),
    ) -> Option<()> {
        self.spend(node.listed + map.len() as u64)?;
        for (position, (name, member)) in map.iter().enumerate() {
            let property = node.properties.get(name.as_str());
            if position <= at || property.is_some_and(|(other, _)| *other <= place) {
                self.text(name, node.name_patterns)?;
                for applied in &node.names {
                    self.visit(*applied, Seen::Name(name))?;
                }
                let named = property.map(|(_, applied)| applied);
                for applied in named.into_iter().chain(&node.members) {
                    self.visit(*applied, Seen::Value(member))?;
                }
            }
        }
        self.depth -= 1;
        Some(())
    }

    fn text(&mut self, text: &str, pattern: Size) -> Option<()> {
        let bytes = text.len() as u64;
        self.spend(bytes / BYTES_IN_STEP)?;
        // A state that is held against a byte takes up to 5 ns.
        self.spend(pattern.at_once(bytes).saturating_mul(bytes))
    }
}

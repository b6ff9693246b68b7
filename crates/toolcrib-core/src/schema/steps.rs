//! Counts the work of validating one value, before it is done.
//!
//! The count follows the paths of the validator, and takes all of them where the validator may stop
//! at the first match. It stops at its limit, so it never costs more than the work that it admits.

use serde_json::{Map, Value};

use super::{
    patterns::Size,
    plan::{Node, Plan},
};

/// Maximum combined nesting of subschemas and values. The validator takes up to 1 KB of stack for
/// each level in a build without optimization, and a thread has 2 MiB.
const DEEPEST: usize = 512;

/// Bytes of text per step.
const BYTES_IN_STEP: u64 = 64;

/// Comparisons of one element for `uniqueItems`: short arrays are compared in pairs.
const LOOKS_AT_UNIQUE: u64 = 16;

/// Steps of `multipleOf` for a number that is not whole: the division is exact, and numbers such as
/// 1e-300 have a thousand bits.
const OF_FRACTION: u64 = 1_024;

/// Steps per byte of a text that the bounded engine matches: it goes back 4,096 times at most, and may read the
/// rest of the text each time, at about 5 ns per byte.
const PER_BYTE_OF_BACKTRACKS: u64 = 1_024;

/// Subschemas that a meta-schema applies to one value, with a safety margin.
const IN_META_SCHEMA: u64 = 256;

impl Plan {
    /// The steps for listing all problems of a value; `None` if there are more than `limit`, or it
    /// nests too deep. One step is one subschema applied to one value, or work of about that size.
    /// If each of them reports an error, it takes 1.1 µs and 500 bytes.
    pub(super) fn steps_to_explain(&self, value: &Value, limit: u64) -> Option<u64> {
        self.meter(limit, false, true).count(value)
    }

    /// The same without the steps of matching patterns, which make no problems.
    pub(super) fn steps_of_problems(&self, value: &Value, limit: u64) -> Option<u64> {
        self.meter(limit, false, false).count(value)
    }

    /// The steps for deciding whether a value is valid, likewise, of 10 to 25 ns each. The
    /// validator remembers some results of recursive references; which ones depends on the order in
    /// which it compiles, so none are counted as remembered. An alternative ends at a member that
    /// differs from its required constant, such as the type of a block.
    pub(super) fn steps_to_decide(&self, value: &Value, limit: u64) -> Option<u64> {
        self.meter(limit, true, true).count(value)
    }

    /// The text that takes most of the steps, if only matching patterns makes a value exceed the limit of
    /// [`steps_to_decide`](Self::steps_to_decide).
    pub(super) fn text_beyond<'v>(&self, value: &'v Value, limit: u64) -> Option<&'v str> {
        self.meter(limit, true, false).count(value)?;
        let mut meter = self.meter(limit, true, true);
        match meter.count(value) {
            Some(_) => None,
            None => meter.costliest.map(|(_, text)| text),
        }
    }

    fn meter<'v>(&self, limit: u64, decides: bool, matches: bool) -> Meter<'_, 'v> {
        Meter { plan: self, left: limit, depth: 0, costliest: None, decides, matches }
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
enum Instance<'v> {
    Value(&'v Value),
    Name(&'v str),
}

struct Meter<'p, 'v> {
    plan: &'p Plan,
    left: u64,
    depth: usize,
    /// The text whose patterns take the most steps, and these steps.
    costliest: Option<(u64, &'v str)>,
    /// Whether the validator stops at the first mismatch.
    decides: bool,
    /// Whether matching patterns counts.
    matches: bool,
}

impl<'v> Meter<'_, 'v> {
    fn count(&mut self, value: &'v Value) -> Option<u64> {
        let limit = self.left;
        self.visit(0, Instance::Value(value))?;
        Some(limit - self.left)
    }

    fn spend(&mut self, steps: u64) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }

    fn visit(&mut self, at: usize, instance: Instance<'v>) -> Option<()> {
        let node = self.plan.nodes.get(at)?;
        self.spend(1 + node.compared)?;
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        if let (true, Instance::Value(Value::Object(map))) = (self.decides, instance)
            && let Some(misfit) = self.misfit(node, map)
        {
            return self.until(node, map, misfit);
        }
        let before = self.left;
        for applied in &node.in_place {
            self.visit(*applied, instance)?;
        }
        let in_place = node.total_in_place.max(before - self.left);
        match instance {
            Instance::Name(text) => self.text(text, node.text_pattern)?,
            Instance::Value(Value::String(text)) => self.text(text, node.text_pattern)?,
            Instance::Value(Value::Array(items)) => self.items(node, items, in_place)?,
            Instance::Value(Value::Object(map)) => self.members(node, map, in_place)?,
            Instance::Value(Value::Number(number)) => {
                if node.multiple.is_some_and(|is_whole| !is_whole || number.is_f64()) {
                    self.spend(OF_FRACTION)?;
                }
            }
            Instance::Value(_) => {}
        }
        if let (1.., Instance::Value(value)) = (node.meta_schemas, instance) {
            let steps = IN_META_SCHEMA.saturating_mul(node.meta_schemas);
            self.spend(steps.saturating_mul(size(value)))?;
        }
        self.depth -= 1;
        Some(())
    }

    /// `in_place` are the steps of the subschemas that apply to the whole array.
    fn items(&mut self, node: &Node, items: &'v [Value], in_place: u64) -> Option<()> {
        for (applied, item) in node.prefix.iter().zip(items) {
            self.visit(*applied, Instance::Value(item))?;
        }
        for applied in &node.elements {
            for item in items {
                self.visit(*applied, Instance::Value(item))?;
            }
        }
        if node.is_unique {
            self.spend(LOOKS_AT_UNIQUE.saturating_mul(items.iter().map(size).sum()))?;
        }
        if node.is_unevaluated {
            self.spend(in_place.saturating_mul(items.len() as u64))?;
        }
        Some(())
    }

    /// `in_place` are the steps of the subschemas that apply to the whole object.
    fn members(&mut self, node: &Node, map: &'v Map<String, Value>, in_place: u64) -> Option<()> {
        self.spend(node.listed)?;
        let looks_at_members =
            !(node.properties.is_empty() && node.members.is_empty() && node.names.is_empty());
        for (name, member) in map.iter().filter(|_| looks_at_members) {
            self.spend(1)?;
            self.text(name, node.name_patterns)?;
            for applied in &node.names {
                self.visit(*applied, Instance::Name(name))?;
            }
            let named = node.properties.get(name.as_str()).map(|(_, applied)| applied);
            for applied in named.into_iter().chain(&node.members) {
                self.visit(*applied, Instance::Value(member))?;
            }
        }
        if node.is_unevaluated {
            self.spend(in_place.saturating_mul(map.len() as u64))?;
        }
        Some(())
    }

    /// The first member that differs from its required constant: its index in the value and among
    /// the properties.
    fn misfit(&self, node: &Node, map: &Map<String, Value>) -> Option<(usize, usize)> {
        map.iter().enumerate().find_map(|(at, (name, member))| {
            let (place, applied) = node.properties.get(name.as_str())?;
            let constant = self.plan.nodes.get(*applied)?.constant.as_deref()?;
            (member.as_str() != Some(constant)).then_some((at, *place))
        })
    }

    /// An object that is invalid because of one member: the validator visits members in their order
    /// or in that of the properties, and nothing else before.
    fn until(
        &mut self,
        node: &Node,
        map: &'v Map<String, Value>,
        (at, place): (usize, usize),
    ) -> Option<()> {
        self.spend(node.listed + map.len() as u64)?;
        for (position, (name, member)) in map.iter().enumerate() {
            let property = node.properties.get(name.as_str());
            if position <= at || property.is_some_and(|(other, _)| *other <= place) {
                self.text(name, node.name_patterns)?;
                for applied in &node.names {
                    self.visit(*applied, Instance::Name(name))?;
                }
                let named = property.map(|(_, applied)| applied);
                for applied in named.into_iter().chain(&node.members) {
                    self.visit(*applied, Instance::Value(member))?;
                }
            }
        }
        self.depth -= 1;
        Some(())
    }

    fn text(&mut self, text: &'v str, pattern: Size) -> Option<()> {
        let bytes = text.len() as u64;
        self.spend(bytes / BYTES_IN_STEP)?;
        if !self.matches {
            return Some(());
        }
        let going_back = if pattern.backtracks { PER_BYTE_OF_BACKTRACKS } else { 0 };
        // An active state takes up to 5 ns per byte.
        let steps = going_back.saturating_add(pattern.at_once(bytes)).saturating_mul(bytes);
        if steps > self.costliest.map_or(0, |(most, _)| most) {
            self.costliest = Some((steps, text));
        }
        self.spend(steps)
    }
}

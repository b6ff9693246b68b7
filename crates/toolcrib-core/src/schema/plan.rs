//! Estimates the work of a schema, from the schema alone.
//!
//! A schema of two kilobytes can apply a million subschemas to one value, because references
//! multiply. A plan contains, for each subschema, the subschemas that it applies, to the same value
//! or to its parts. Schemas above a limit here are not compiled. For the others,
//! [`Plan::steps_to_decide`] counts the work for one value before it is validated.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use serde_json::Value;

use super::{keywords, patterns::Size, references::References};

/// Maximum number of subschemas. The compiler takes about 2 µs and 1.5 KB for each.
const MOST_SUBSCHEMAS: usize = 10_000;

/// Maximum number of subschemas for one value. Honest unions have up to some hundred members.
const MOST_IN_PLACE: u64 = 4_096;

/// Maximum nesting of subschemas for one value. Each takes stack.
const DEEPEST_IN_PLACE: usize = 64;

/// Maximum total number of subschemas that `unevaluatedProperties` and `unevaluatedItems` look
/// through: the compiler copies each of them, which takes about 6 µs and 4 KB.
const MOST_UNEVALUATED: u64 = 2_048;

/// Maximum total number of states of a schema's patterns. The compiler takes about 0.1 µs and 50
/// bytes for each.
pub(super) const MOST_STATES: u64 = 50_000;

/// The subschemas that a schema applies to a value.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) nodes: Vec<Node>,
    states: u64,
    patterns: usize,
    /// Whether some pattern is certainly not linear.
    pub(super) backtracks: bool,
}

/// One subschema; others are referred to by their index in [`Plan::nodes`].
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The subschemas that apply to the same value.
    pub(super) in_place: Vec<usize>,
    /// The subschemas that apply to one member of an object, each with its index.
    pub(super) properties: HashMap<Box<str>, (usize, usize)>,
    /// The only valid text, if the schema is certain to check it first.
    pub(super) constant: Option<Box<str>>,
    /// The subschemas that may apply to all members.
    pub(super) members: Vec<usize>,
    /// The subschemas that apply to the names of members.
    pub(super) names: Vec<usize>,
    /// The subschemas that apply to one array element each, in order.
    pub(super) prefix: Vec<usize>,
    /// The subschemas that may apply to all elements.
    pub(super) elements: Vec<usize>,
    /// The patterns for texts.
    pub(super) text_pattern: Size,
    /// The patterns for names of members.
    pub(super) name_patterns: Size,
    /// The size of the constants that a value is compared with.
    pub(super) compared: u64,
    /// The number of names that an object is searched for.
    pub(super) listed: u64,
    /// Whether elements are compared with each other.
    pub(super) is_unique: bool,
    /// Whether each part is validated against all subschemas for the same value.
    pub(super) is_unevaluated: bool,
    /// The number of times that a meta-schema applies.
    pub(super) meta_schemas: u64,
    /// Whether the divisor of `multipleOf` is whole, if there is one.
    pub(super) multiple: Option<bool>,
    /// The number of subschemas for one value, including this one.
    pub(super) total_in_place: u64,
}

impl Plan {
    /// Creates the plan of a schema.
    ///
    /// # Errors
    /// Why the schema causes too much work, or has an unresolvable reference.
    pub(super) fn of(schema: &Value) -> Result<Self, Arc<str>> {
        let references =
            References::of(schema).ok_or("it has too many subschemas with an `$id`")?;
        let mut reader = Reader {
            references,
            knows_const: keywords::knows_const(schema),
            nodes: Vec::new(),
            known: HashMap::new(),
            waiting: VecDeque::new(),
        };
        reader.node(schema);
        let mut plan = Self { nodes: Vec::new(), states: 0, patterns: 0, backtracks: false };
        while let Some((schema, at)) = reader.waiting.pop_front() {
            if reader.nodes.len() > MOST_SUBSCHEMAS {
                return Err(format!("it has more than {MOST_SUBSCHEMAS} subschemas").into());
            }
            let node = keywords::read(&mut reader, schema)?;
            let of_node = node.text_pattern.and(node.name_patterns);
            plan.states = plan.states.saturating_add(of_node.states);
            plan.backtracks |= of_node.backtracks;
            plan.patterns += ["pattern", "patternProperties"]
                .into_iter()
                .filter_map(|key| schema.get(key))
                .map(|one| one.as_object().map_or(1, serde_json::Map::len))
                .sum::<usize>();
            if let Some(place) = reader.nodes.get_mut(at) {
                *place = node;
            }
        }
        if plan.states > MOST_STATES {
            let problem = format!(
                "its patterns have more than {MOST_STATES} states; use smaller counts in `{{…}}`"
            );
            return Err(problem.into());
        }
        plan.nodes = reader.nodes;
        plan.check_in_place()?;
        Ok(plan)
    }

    /// The memory of a compiled schema, in units of about 1.5 KB.
    pub(super) fn weight(&self) -> usize {
        /// The memory of a pattern during matching, in the same units.
        const OF_PATTERN: usize = 100;
        self.nodes.len() + OF_PATTERN * self.patterns
    }

    /// Adds up the subschemas for one value, from the leaves upward.
    fn check_in_place(&mut self) -> Result<(), Arc<str>> {
        let mut applied_by = vec![Vec::new(); self.nodes.len()];
        let mut missing: Vec<usize> = self.nodes.iter().map(|node| node.in_place.len()).collect();
        for (at, node) in self.nodes.iter().enumerate() {
            for applied in &node.in_place {
                applied_by.get_mut(*applied).into_iter().for_each(|by| by.push(at));
            }
        }
        let mut totals = vec![(1_u64, 1_usize); self.nodes.len()];
        let mut ready: Vec<usize> = (0..self.nodes.len())
            .filter(|at| missing.get(*at).is_some_and(|missing| *missing == 0))
            .collect();
        let (mut done, mut unevaluated) = (0, 0_u64);
        while let Some(at) = ready.pop() {
            done += 1;
            let (count, depth) = totals.get(at).copied().unwrap_or_default();
            if count > MOST_IN_PLACE {
                let problem = format!(
                    "more than {MOST_IN_PLACE} subschemas apply to one value; nest fewer \
                     `anyOf`, `oneOf`, `allOf` and `$ref`"
                );
                return Err(problem.into());
            }
            if depth > DEEPEST_IN_PLACE {
                let problem = format!(
                    "subschemas for one value nest deeper than {DEEPEST_IN_PLACE} levels; nest \
                     fewer `anyOf`, `oneOf`, `allOf` and `$ref`"
                );
                return Err(problem.into());
            }
            if let Some(node) = self.nodes.get_mut(at) {
                node.total_in_place = count;
                unevaluated += if node.is_unevaluated { count } else { 0 };
            }
            for by in applied_by.get(at).into_iter().flatten() {
                if let Some(total) = totals.get_mut(*by) {
                    *total = (total.0.saturating_add(count), total.1.max(depth + 1));
                }
                if let Some(missing) = missing.get_mut(*by) {
                    *missing -= 1;
                    if *missing == 0 {
                        ready.push(*by);
                    }
                }
            }
        }
        if done < self.nodes.len() {
            return Err("a `$ref` leads back to its own subschema for the same value".into());
        }
        if unevaluated > MOST_UNEVALUATED {
            let problem = format!(
                "`unevaluatedProperties` and `unevaluatedItems` look through more than \
                 {MOST_UNEVALUATED} subschemas; use `additionalProperties`, or fewer alternatives"
            );
            return Err(problem.into());
        }
        Ok(())
    }
}

/// Reads a schema without recursion: a chain of references can be as long as the schema.
pub(super) struct Reader<'s> {
    pub(super) references: References<'s>,
    /// Whether `const` means the same in every draft that the schema may be of.
    pub(super) knows_const: bool,
    nodes: Vec<Node>,
    /// The indexes of subschemas, by address.
    known: HashMap<*const Value, usize>,
    waiting: VecDeque<(&'s Value, usize)>,
}

impl<'s> Reader<'s> {
    /// The index of a subschema, which is read later.
    pub(super) fn node(&mut self, schema: &'s Value) -> usize {
        if let Some(at) = self.known.get(&std::ptr::from_ref(schema)) {
            return *at;
        }
        let at = self.nodes.len();
        self.known.insert(schema, at);
        self.nodes.push(Node::default());
        self.waiting.push_back((schema, at));
        at
    }

    /// The nodes of several subschemas.
    pub(super) fn nodes(&mut self, schemas: impl IntoIterator<Item = &'s Value>) -> Vec<usize> {
        schemas.into_iter().map(|schema| self.node(schema)).collect()
    }
}

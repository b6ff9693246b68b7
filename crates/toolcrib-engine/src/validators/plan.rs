//! How much work a schema can cause, read from the schema alone.
//!
//! A schema of two kilobytes can apply a million subschemas to one value, because references multiply.
//! A plan holds, for each subschema, the subschemas that it applies, to the same value or to its parts.
//! Schemas that are over a limit here are not compiled. For those that remain, [`Plan::steps_to_decide`] counts
//! the work for one value before it is validated.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use serde_json::Value;

use super::{keywords, patterns::Size, references::References};

/// How many subschemas a schema may have. The compiler takes about 2 µs and 1.5 KB for each.
const MOST_SUBSCHEMAS: usize = 10_000;

/// How many subschemas may apply to one value. Honest unions have up to some hundred members.
const MOST_IN_PLACE: u64 = 4_096;

/// How many subschemas may apply to one value inside of each other. Each takes stack.
const DEEPEST_IN_PLACE: usize = 64;

/// How many subschemas `unevaluatedProperties` and `unevaluatedItems` may look through, all together:
/// the compiler copies each of them, which takes about 6 µs and 4 KB.
const MOST_UNEVALUATED: u64 = 2_048;

/// How many states the patterns of a schema may have, all together. The compiler takes about 0.1 µs
/// and 50 bytes for each.
const MOST_STATES: u64 = 50_000;

/// What a schema applies to a value.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) nodes: Vec<Node>,
    states: u64,
    patterns: usize,
}

/// One subschema; the others are named by their position in [`Plan::nodes`].
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Those that apply to the same value.
    pub(super) in_place: Vec<usize>,
    /// Those that apply to one member of an object, each with its place among them.
    pub(super) properties: HashMap<Box<str>, (usize, usize)>,
    /// The only text that fits, if the schema is certain to say so before anything else.
    pub(super) constant: Option<Box<str>>,
    /// Those that apply to all members, or may.
    pub(super) members: Vec<usize>,
    /// Those that apply to the names of members.
    pub(super) names: Vec<usize>,
    /// Those that apply to one element of an array each, in order.
    pub(super) prefix: Vec<usize>,
    /// Those that apply to all elements, or may.
    pub(super) elements: Vec<usize>,
    /// What texts are matched against.
    pub(super) text_pattern: Size,
    /// What names of members are matched against.
    pub(super) name_patterns: Size,
    /// The size of what a value is compared with.
    pub(super) compared: u64,
    /// How many names an object is searched for.
    pub(super) listed: u64,
    /// Whether elements are compared with each other.
    pub(super) is_unique: bool,
    /// Whether each part is held against all that applies in place.
    pub(super) is_unevaluated: bool,
    /// How often a meta-schema applies.
    pub(super) meta_schemas: u64,
    /// Whether the number that a value must be a multiple of is whole, if there is one.
    pub(super) multiple: Option<bool>,
    /// How many subschemas apply to one value, this one included.
    pub(super) total_in_place: u64,
}

impl Plan {
    /// The plan of a schema.
    ///
    /// # Errors
    /// Why the schema causes too much work, or cannot be followed.
    pub(crate) fn of(schema: &Value) -> Result<Self, Arc<str>> {
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
        let mut plan = Self { nodes: Vec::new(), states: 0, patterns: 0 };
        while let Some((schema, at)) = reader.waiting.pop_front() {
            if reader.nodes.len() > MOST_SUBSCHEMAS {
                return Err(format!("it has more than {MOST_SUBSCHEMAS} subschemas").into());
            }
            let node = keywords::read(&mut reader, schema)?;
            plan.states =
                plan.states.saturating_add(node.text_pattern.and(node.name_patterns).states);
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

    /// How much memory a compiled schema may take, in units of about 1.5 KB.
    pub(super) fn weight(&self) -> usize {
        /// What a pattern keeps while it matches.
        const OF_PATTERN: usize = 100;
        self.nodes.len() + OF_PATTERN * self.patterns
    }

    /// Adds up what applies to one value, from the subschemas that apply no others upward.
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
    /// Whether `const` says the same in every draft that the schema may be of.
    pub(super) knows_const: bool,
    nodes: Vec<Node>,
    /// The positions of subschemas, by address.
    known: HashMap<*const Value, usize>,
    waiting: VecDeque<(&'s Value, usize)>,
}

impl<'s> Reader<'s> {
    /// The position of a subschema, which is read later.
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
}

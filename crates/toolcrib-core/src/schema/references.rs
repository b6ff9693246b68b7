//! The possible targets of a schema's references.
//!
//! The base of a reference depends on the dialect, on every `$id` around it and on how it was
//! reached. To limit the work, it is enough to know all possible targets.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// Maximum number of resources of a schema: each is a possible target.
const MOST_RESOURCES: usize = 1_000;

/// The named subschemas of a schema.
pub(super) struct References<'s> {
    /// Subschemas by `$anchor`, `$dynamicAnchor` or an `$id` that is only a fragment.
    anchors: HashMap<&'s str, Vec<&'s Value>>,
    /// Resources with the last part of their `$id`. The schema itself is the first.
    resources: Vec<(&'s str, &'s Value)>,
}

/// The target of a reference.
pub(super) enum Target<'s> {
    /// One of these subschemas; empty without a target.
    Within(Vec<&'s Value>),
    /// A meta-schema, which the compiler knows.
    MetaSchema,
}

impl<'s> References<'s> {
    /// `None` for a schema with too many resources.
    pub(super) fn of(root: &'s Value) -> Option<Self> {
        let mut found = Self { anchors: HashMap::new(), resources: vec![("", root)] };
        let mut waiting = vec![root];
        while let Some(value) = waiting.pop() {
            match value {
                Value::Object(map) => {
                    for key in ["$anchor", "$dynamicAnchor"] {
                        if let Some(Value::String(name)) = map.get(key) {
                            found.anchors.entry(name).or_default().push(value);
                        }
                    }
                    for key in ["$id", "id"] {
                        let Some(Value::String(id)) = map.get(key) else { continue };
                        match id.strip_prefix('#') {
                            Some(name) => found.anchors.entry(name).or_default().push(value),
                            None => found.resources.push((last_part(id), value)),
                        }
                    }
                    waiting.extend(map.values());
                }
                Value::Array(items) => waiting.extend(items),
                _ => {}
            }
        }
        (found.resources.len() <= MOST_RESOURCES).then_some(found)
    }

    pub(super) fn target(&self, reference: &str) -> Target<'s> {
        let (resource, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        let mut found: Vec<_> = if fragment.is_empty() || fragment.starts_with('/') {
            let wanted = last_part(resource);
            let may_be = |name: &str| resource.is_empty() || name == wanted;
            let resources = self.resources.iter().filter(|(name, _)| may_be(name));
            resources.filter_map(|(_, resource)| resource.pointer(&fragment)).collect()
        } else {
            self.anchors.get(&*fragment).cloned().unwrap_or_default()
        };
        // The schema itself may have an `$id`, too.
        found.sort_unstable_by_key(|one| std::ptr::from_ref(*one));
        found.dedup_by(|one, other| std::ptr::eq(*one, *other));
        let host = resource.split_once("://").map_or("", |(_, rest)| rest);
        if found.is_empty() && host.starts_with("json-schema.org/") {
            return Target::MetaSchema;
        }
        Target::Within(found)
    }
}

/// The common part of two spellings of one URI, relative or not.
fn last_part(uri: &str) -> &str {
    uri.trim_end_matches('#').rsplit('/').next().unwrap_or_default()
}

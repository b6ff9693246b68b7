//! The tools that a client misses, as far as it may know them: each with a fixed text as its reason, and
//! never with text of its definition.

use std::{borrow::Cow, collections::HashSet};

use serde_json::{Value, json};
use toolcrib_core::{__internal::beginning, harmless};
use toolcrib_engine::MissingTool;

use crate::wire::quoted::LONGEST_NAME;

/// The key under which a listing names them.
pub(crate) const KEY: &str = "toolcrib/withheld";

/// The limit of named tools.
const MOST_NAMED: usize = 20;

/// The missing tools that a client has been told of.
#[derive(Default)]
pub(crate) struct Told(HashSet<MissingTool>);

impl Told {
    /// The missing tools of which the client has not been informed, or that were back in the meantime. From now on it has.
    pub(crate) fn untold<'a>(&mut self, missing: &'a [MissingTool]) -> Vec<&'a MissingTool> {
        self.0.retain(|tool| missing.contains(tool));
        missing.iter().filter(|tool| self.0.insert((*tool).clone())).collect()
    }
}

/// A name as the client lists the tools of its server, cleaned and bounded.
fn shown(name: &str) -> String {
    beginning(&harmless(name).replace(['"', '\n'], " "), LONGEST_NAME)
}

/// The metadata of a listing. `name` is the name of a tool for clients.
pub(crate) fn in_meta<'a>(
    missing: &'a [MissingTool],
    name: impl Fn(&'a MissingTool) -> Cow<'a, str>,
) -> Option<Value> {
    let named = missing.iter().take(MOST_NAMED);
    let tools: Vec<_> = named
        .map(|tool| json!({ "name": shown(&name(tool)), "reason": tool.reason.as_str() }))
        .collect();
    (!tools.is_empty()).then(|| json!({ "count": missing.len(), "tools": tools }))
}

/// One sentence for a model and its user.
pub(crate) fn in_words<'a>(
    missing: impl ExactSizeIterator<Item = &'a MissingTool>,
    name: impl Fn(&'a MissingTool) -> Cow<'a, str>,
) -> Option<String> {
    let count = missing.len();
    let named = missing
        .take(MOST_NAMED)
        .map(|tool| format!("\"{}\" ({})", shown(&name(tool)), tool.reason))
        .collect::<Vec<_>>()
        .join(", ");
    let more = match count.saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (count > 0).then(|| format!("These tools are withheld: {named}{more}."))
}

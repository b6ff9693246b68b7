//! The tools that a client misses, as far as it may know them: each with a fixed text as its reason, and
//! never with text of its definition.

use serde_json::{Value, json};
use toolcrib_core::{__internal::beginning, harmless};
use toolcrib_engine::MissingTool;

use super::{Shared, quoted::LONGEST_NAME};

/// The key under which a listing names them.
pub(super) const KEY: &str = "toolcrib/withheld";

/// The limit of named tools.
const MOST_NAMED: usize = 20;

/// A name as the client lists the tools of its server.
fn shown(gateway: &Shared, tool: &MissingTool) -> String {
    let server = tool.origin.rsplit(" > ").next().and_then(|leaf| leaf.strip_prefix("mcp:"));
    let name = match server {
        Some(server) => gateway.config.names.of_server(server, &tool.name, None),
        None => (&*tool.name).into(),
    };
    beginning(&harmless(&name).replace(['"', '\n'], " "), LONGEST_NAME)
}

/// The metadata of a listing.
pub(super) fn in_meta(gateway: &Shared, missing: &[MissingTool]) -> Option<Value> {
    let named = missing.iter().take(MOST_NAMED);
    let tools: Vec<_> = named
        .map(|tool| json!({ "name": shown(gateway, tool), "reason": tool.reason.as_str() }))
        .collect();
    (!tools.is_empty()).then(|| json!({ "count": missing.len(), "tools": tools }))
}

/// One sentence for a model and its user.
pub(super) fn in_words<'a>(
    gateway: &Shared,
    missing: impl ExactSizeIterator<Item = &'a MissingTool>,
) -> Option<String> {
    let count = missing.len();
    let named = missing
        .take(MOST_NAMED)
        .map(|tool| format!("\"{}\" ({})", shown(gateway, tool), tool.reason))
        .collect::<Vec<_>>()
        .join(", ");
    let more = match count.saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (count > 0).then(|| format!("These tools are withheld: {named}{more}."))
}

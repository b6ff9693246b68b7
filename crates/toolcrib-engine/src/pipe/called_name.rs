//! The names by which models call tools.

use toolcrib_core::{__internal::nearest_names, MAX_TOOL_NAME, Menu, ToolName};

/// The namespaces in which models were trained to find their tools, and which they write before a
/// name. `functions` is that of OpenAI's models, gpt-oss included
/// ([Harmony](https://github.com/openai/harmony/blob/main/docs/format.md#function-calling)), and of
/// Kimi's ids; `default_api` is Gemini's (tya5/reyn#1989); for `tools`,
/// and a slash after either, see openclaw/openclaw#39328. `multi_tool_use` is none: its only tool makes
/// several calls.
const NAMESPACES: [&str; 3] = ["functions", "default_api", "tools"];

/// The characters after a namespace. None is part of a tool's name.
const SEPARATORS: [char; 3] = ['.', ':', '/'];

/// The offered names that a search for a near one compares, at most: about a millisecond.
const MOST_COMPARED: usize = 500;

/// The near names in a message, at most.
const MOST_NEAR: usize = 3;

/// The offered tool that a model calls by a name: the tool with that name, else the one with the name
/// that remains without blanks around it and without one of the prefixes that vendors' models write,
/// such as `functions.` and `default_api:`. Prefixes of servers stay.
///
/// For a loop with its own model; the agent's loop uses it. The engine itself calls tools by their
/// exact names only. A withheld tool is never reached: a [`ToolName`] contains neither blanks nor the
/// characters after a prefix, so such a name is that of no tool.
pub fn offered_name<'m>(menu: &'m Menu, called: &str) -> Option<&'m ToolName> {
    menu.get(called).or_else(|| menu.get(bare(called))).map(|tool| tool.name())
}

/// A name without blanks around it and without a vendor's prefix.
fn bare(called: &str) -> &str {
    let name = called.trim();
    let after = |namespace| name.strip_prefix(namespace)?.strip_prefix(SEPARATORS);
    NAMESPACES.into_iter().find_map(after).unwrap_or(name).trim()
}

/// The offered names that are near to a name that no offered tool has.
pub(crate) fn near_names<'m>(menu: &'m Menu, called: &str) -> Vec<&'m str> {
    let name = bare(called);
    // A slip is not longer than this.
    if name.len() > 2 * MAX_TOOL_NAME {
        return Vec::new();
    }
    let offered = menu.tools().iter().chain(menu.deferred()).take(MOST_COMPARED);
    nearest_names(name, offered.map(|tool| tool.name().as_str()), MOST_NEAR)
}

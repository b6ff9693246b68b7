//! The names by which rules identify MCP servers and their tools.

/// The key of a tool's own name on its MCP server, if it has another one here.
pub const MCP_OWN_NAME: &str = "mcp_name";

/// Whether a tool's name begins like those of servers, in any case.
pub fn is_mcp_name(name: &str) -> bool {
    begins(name, "mcp__")
}

/// Whether a toolset is that of servers' tools, or one of their other offers and their requests, such as
/// `mcp.resources`, in any case.
pub fn is_mcp_toolset(toolset: &str) -> bool {
    toolset.eq_ignore_ascii_case("mcp") || begins(toolset, "mcp.")
}

/// Whether an origin is that of a server, in any case.
pub(crate) fn is_mcp_origin(origin: &str) -> bool {
    begins(origin, "mcp:")
}

fn begins(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

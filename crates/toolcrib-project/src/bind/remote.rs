//! The names of tools of MCP servers.

/// The prefix of the names of all tools of MCP servers.
pub(crate) const REMOTE: &str = "mcp__";
/// The separator between the names of a server and its tool; a server's name cannot contain it.
pub(crate) const BETWEEN: &str = "__";
/// The toolset of all tools of MCP servers.
const REMOTE_TOOLSET: &str = "mcp";

/// The toolsets of servers: of their tools, and those by which rules name their other offers and their
/// requests.
pub(crate) const REMOTE_TOOLSETS: [&str; 6] = [
    REMOTE_TOOLSET,
    "mcp.elicitation",
    "mcp.prompts",
    "mcp.resources",
    "mcp.roots",
    "mcp.sampling",
];

/// The server and the tool of a name or pattern that contains both.
pub(crate) fn parts_of_remote(name: &str) -> Option<(&str, &str)> {
    let (server, tool) = name.strip_prefix(REMOTE)?.split_once(BETWEEN)?;
    (!server.contains(['*', '?'])).then_some((server, tool))
}

/// The prefix of the tool names of an MCP server.
pub(crate) fn remote_prefix(server: &str) -> String {
    format!("{REMOTE}{server}{BETWEEN}")
}

/// Whether a pattern may match a name with this prefix.
pub(crate) fn may_begin(pattern: &str, start: &str) -> bool {
    let mut start = start.chars();
    for one in pattern.chars() {
        match (one, start.next()) {
            ('*', _) | (_, None) => return true,
            ('?', Some(_)) => {}
            (one, Some(other)) if one == other => {}
            _ => return false,
        }
    }
    start.next().is_none()
}

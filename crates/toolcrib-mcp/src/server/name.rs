use std::{fmt, sync::Arc};

use toolcrib_core::ToolName;

/// The prefix of all names of remote tools.
const PREFIX: &str = "mcp__";
/// The separator between a server's name and that of its tool.
const SEPARATOR: &str = "__";

/// The operator's name of a server: 1 to 32 of the characters `a-z`, `A-Z`, `0-9`, `_` and `-`,
/// without `__` and not ending in `_`, so that it can be separated from the following tool name.
/// The server's self-reported name is separate and decides nothing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

impl ServerName {
    /// The length limit, in characters: the rest of a tool's name has room for the tool.
    pub const MAX: usize = 32;

    /// Checks the name of a server.
    ///
    /// # Errors
    /// [`InvalidServerNameError`] with the problem.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, InvalidServerNameError> {
        let name = name.into();
        let bad = |c: &char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let problem = if name.is_empty() {
            "it is empty".to_owned()
        } else if let Some(bad) = name.chars().find(bad) {
            format!("it contains {bad:?}")
        } else if name.len() > Self::MAX {
            format!("it has {} characters", name.len())
        } else if name.contains(SEPARATOR) {
            format!("it contains `{SEPARATOR}`")
        } else if name.ends_with('_') {
            "it ends in `_`".to_owned()
        } else {
            return Ok(Self(name));
        };
        Err(InvalidServerNameError { name, problem })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The glob that matches all names of this server's tools, and none of another's:
    /// `mcp__git__*`.
    pub fn pattern(&self) -> String {
        format!("{PREFIX}{}{SEPARATOR}*", self.0)
    }

    /// The name under which a model sees and calls the server's tool: `mcp__git__git_log`.
    ///
    /// Characters that model APIs reject are replaced, as by [`ToolName::fitted`]; two tools never
    /// get one name.
    pub fn tool_name(&self, tool: &str) -> String {
        let start = format!("{PREFIX}{}{SEPARATOR}", self.0);
        // It always succeeds: a server's name leaves room, and contains only valid characters of
        // tool names.
        ToolName::fitted(&start, &self.0, tool).map_or(start, |name| name.to_string())
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// An invalid name of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a valid name of an MCP server: {problem}; use 1 to {} of the characters a-z, \
     A-Z, 0-9, `_` and `-`, without `__` and not ending in `_`",
    name.escape_debug(),
    ServerName::MAX
)]
pub struct InvalidServerNameError {
    /// The refused name.
    pub name: Arc<str>,
    problem: String,
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use toolcrib_core::Glob;

    use super::*;

    #[test]
    fn what_fits_stays_as_it_is() {
        let git = ServerName::new("git").unwrap();
        assert_eq!(git.tool_name("git_log"), "mcp__git__git_log");
        assert_eq!(git.tool_name(&"x".repeat(54)).len(), 64);
        assert_eq!(git.tool_name(&"x".repeat(55)).len(), 64);
        assert_eq!(git.tool_name("git.log"), "mcp__git__git_log_06b7b3ff");
        assert_eq!(git.pattern(), "mcp__git__*");
    }

    #[test]
    fn a_bad_name_is_named_with_what_is_wrong() {
        for (name, problem) in [
            ("", "it is empty"),
            ("a b", "it contains ' '"),
            ("a__b", "it contains `__`"),
            ("a_", "it ends in `_`"),
            (&"x".repeat(33), "it has 33 characters"),
        ] {
            let error = ServerName::new(name).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    /// Similar names: short, of few characters, and some already changed.
    fn tool() -> impl Strategy<Value = String> {
        prop_oneof!["[ab_]{0,4}", "[a._/é-]{0,70}", "[a-z]{1,3}_[0-9a-f]{8}", any::<String>(),]
    }

    fn server() -> impl Strategy<Value = ServerName> {
        "[ab_-]{1,5}|[a-z]{28,32}".prop_filter_map("no name", |name| ServerName::new(name).ok())
    }

    proptest! {
        #[test]
        fn two_tools_never_get_one_name(
            tools in prop::collection::vec((server(), tool()), 1..30),
        ) {
            let mut taken = HashMap::new();
            for (server, tool) in tools {
                let name = server.tool_name(&tool);
                prop_assert!(ToolName::new(name.as_str()).is_ok(), "{}", name);
                prop_assert!(Glob::new(server.pattern()).matches(&name), "{}", name);
                let before = taken.insert(name.clone(), (server.clone(), tool.clone()));
                if let Some(before) = before {
                    prop_assert_eq!(before, (server, tool), "both are {}", name);
                }
            }
        }
    }
}

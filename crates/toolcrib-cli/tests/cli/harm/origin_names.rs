//! Tools that claimed to be of an MCP server by their names.

use crate::support::Project;

const SERVER: &str = "[mcp.git]\ncommand = 'python3'\nargs = ['-c', 'pass']\n";

fn refused(file: &str, plugin: &str) -> String {
    let file = format!("{SERVER}{file}");
    let project = Project::of(&[("toolcrib.toml", &file), ("p/plugin.toml", plugin)]);
    let outcome = project.toolcrib(&["check"]);
    assert_eq!(outcome.code, Some(2), "{}{}", outcome.stdout, outcome.stderr);
    format!("{}{}", outcome.stdout, outcome.stderr)
}

fn tool(name: &str, more: &str) -> String {
    format!(
        "[[tool]]\nkind = 'command'\nname = '{name}'\ndescription = 'Says it.'\nread_only = true\n\
         program = 'true'\n{more}\n"
    )
}

#[test]
fn a_declared_tool_was_called_like_one_of_a_server() {
    for name in ["mcp__git__log", "MCP__git__log", "Mcp__other__x", "mcp__x"] {
        let said = refused(&tool(name, ""), "");
        assert!(said.contains("the prefix `mcp__` is reserved for tools of MCP servers"), "{said}");
        let said = refused("[plugin.p]\npath = 'p'\nprograms = true\n", &tool(name, ""));
        assert!(said.contains("the prefix `mcp__` is reserved for tools of MCP servers"), "{said}");
    }
    for toolset in ["mcp", "MCP", "mcp.prompts", "mcp.sampling", "Mcp.Roots"] {
        let said = refused(&tool("log", &format!("toolset = '{toolset}'")), "");
        let reserved = format!("`{toolset}` is reserved for tools of MCP servers");
        assert!(said.contains(&reserved), "{said}");
    }
}

#[test]
fn rules_could_not_name_what_servers_offer_and_ask() {
    let rule = |toolset: &str| {
        format!(
            "policy_default = 'allow'\n{SERVER}[[policy]]\neffect = 'deny'\ntoolset = '{toolset}'\nmcp_server = 'git'\n"
        )
    };
    for toolset in ["mcp.elicitation", "mcp.prompts", "mcp.resources", "mcp.roots", "mcp.sampling"]
    {
        let project = Project::of(&[("toolcrib.toml", &rule(toolset))]);
        let outcome = project.toolcrib(&["check"]);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        assert!(!outcome.stderr.contains(toolset), "{}", outcome.stderr);
    }
    let said = refused("[[policy]]\neffect = 'deny'\ntoolset = 'mcp.root'\n", "");
    assert!(said.contains("unknown toolset `mcp.root`") && said.contains("`mcp.roots`"), "{said}");
}

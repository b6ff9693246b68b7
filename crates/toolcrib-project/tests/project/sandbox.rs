//! Sandboxes as project files declare them.

use std::fs;

use toolcrib_capabilities::process::{SandboxTier, sandbox_support};
use toolcrib_skip::skip;

use crate::folder::Folder;

const TOOL: &str = r#"
[[tool]]
kind = "command"
name = "look"
description = "Looks."
program = "/bin/sh"
args = ["-c", "true"]
"#;

/// Whether this machine enforces the tiers; if not, each of these projects has one more problem, and its test
/// is skipped.
fn is_possible() -> bool {
    sandbox_support(SandboxTier::Full).map_err(skip).is_ok()
}

#[test]
fn tiers_and_folders_load() {
    if !is_possible() {
        return;
    }
    let keys = "sandbox = \"full\"\nsandbox_read = [\"in\"]\nsandbox_write = [\"out\"]\n\
                sandbox_hosts = [\"api.example.com\", \"*.example.org\"]\n\
                sandbox_addresses = [\"10.1.2.3\"]\n";
    let folder = Folder::with(&format!("[sandbox]\ntier = \"files\"\n{TOOL}{keys}"));
    for name in ["in", "out"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    assert_eq!(folder.load().tools().len(), 1);
}

#[test]
fn wrong_sandboxes_are_reported_at_once() {
    if !is_possible() {
        return;
    }
    let keys = r#"
[sandbox]
tier = "most"
[[tool]]
kind = "command"
name = "one"
description = "One."
program = "/bin/true"
sandbox_read = ["in"]
[[tool]]
kind = "command"
name = "two"
description = "Two."
program = "/bin/true"
sandbox = "files"
sandbox_write = ["."]
sandbox_hosts = ["example.com"]
[[tool]]
kind = "command"
name = "three"
description = "Three."
program = "/bin/true"
sandbox = "full"
sandbox_read = ["missing"]
sandbox_hosts = ["https://example.com"]
[mcp.remote]
url = "https://example.com/mcp"
sandbox = "full"
"#;
    let folder = Folder::with(keys);
    fs::create_dir(folder.path().join("in")).unwrap();
    let problems = folder.problems().to_string();
    for expected in [
        "`tier`",
        "`sandbox_read` has no effect in the sandbox `tree`",
        "`sandbox_hosts` has no effect in the sandbox `files`",
        "which contains Toolcrib's state or keys",
        "`missing` does not exist",
        "`https://example.com` is not a valid host",
        "`sandbox` applies only to a program",
    ] {
        assert!(problems.contains(expected), "no {expected} in:\n{problems}");
    }
}

#[test]
fn a_plugin_does_not_weaken_the_sandbox_of_the_project() {
    if !is_possible() {
        return;
    }
    for (project, plugin, is_refused) in [
        ("", "", false),
        ("", "none", true),
        ("files", "", false),
        ("files", "tree", true),
        ("files", "full", false),
    ] {
        let line = |key: &str, tier: &str| {
            if tier.is_empty() { String::new() } else { format!("{key} = \"{tier}\"\n") }
        };
        let folder = Folder::with(&format!(
            "[sandbox]\n{}[plugin.crm]\npath = \"crm\"\nprograms = true\n",
            line("tier", project)
        ));
        let folder = folder.file("crm/plugin.toml", format!("{TOOL}{}", line("sandbox", plugin)));
        if is_refused {
            let problems = folder.problems().to_string();
            assert!(problems.contains("the plugin `crm` weakens"), "{problems}");
        } else {
            assert_eq!(folder.load().tools().len(), 1, "{project} {plugin}");
        }
    }
}

#[test]
fn servers_show_their_tier_and_imported_ones_keep_the_default() {
    if !is_possible() {
        return;
    }
    let folder = Folder::with(
        "mcp_files = [\"servers.json\"]\n[sandbox]\ntier = \"files\"\n[mcp.own]\ncommand = \"/bin/true\"\n\
         [mcp.far]\nurl = \"https://example.com/mcp\"\n[mcp.named]\nsandbox = \"full\"\n",
    );
    let servers =
        r#"{"mcpServers": {"named": {"command": "/bin/true"}, "other": {"command": "/bin/true"}}}"#;
    let project = folder.file("servers.json", servers).load();
    let tiers: Vec<_> = project
        .mcp_servers()
        .iter()
        .map(|server| (server.name().as_str(), server.sandbox().map(SandboxTier::as_str)))
        .collect();
    let expected =
        [("own", Some("files")), ("far", None), ("named", Some("full")), ("other", Some("tree"))];
    assert_eq!(tiers, expected);
}

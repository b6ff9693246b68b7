//! Plugins that are folders, as each command shows them.

use serde_json::{Value, json};

use crate::support::Project;

/// A project with a tool, and a plugin with a tool, a skill and a server.
fn project() -> Project {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/mcp_server.py");
    let mcp = format!(
        "[mcp.small]\ncommand = \"python3\"\nargs = [\"{server}\", \"small\"]\n\
         env = {{ MARK = \"none\", LOG = \"started.log\" }}\n"
    );
    Project::of(&[
        (
            "toolcrib.toml",
            "name = \"desk\"\npolicy_default = \"allow\"\n\
             [plugin.notes]\npath = \"plugins/notes\"\nprograms = true\n\
             [[personality]]\nname = \"bare\"\nplugins = []\n\
             [[policy]]\neffect = \"deny\"\nplugin = \"notes\"\ntenant = \"acme\"\n\
             [[tool]]\nkind = \"command\"\nname = \"say\"\ndescription = \"Says.\"\n\
             program = \"echo\"\n",
        ),
        (
            "plugins/notes/plugin.toml",
            &format!(
                "{mcp}[[tool]]\nkind = \"command\"\nname = \"list_notes\"\ndescription = \"Lists \
                 the notes.\"\nprogram = \"ls\"\nread_only = true\n"
            ),
        ),
        (
            "plugins/notes/skills/reading/SKILL.md",
            "---\nname: reading\ndescription: Reads notes.\nmetadata:\n  toolcrib-tools: \
             list_notes\n---\nRead.\n",
        ),
    ])
}

#[test]
fn check_and_tools_show_the_plugin_of_each_part() {
    let project = project();
    let outcome = project.toolcrib(&["check", "--verbose"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let shown = outcome.stdout.replace(env!("CARGO_MANIFEST_DIR"), ".");
    insta::assert_snapshot!(shown, @"
    ok desk
      2 declared tools (1 with write access) and `read_skill`, 553 characters for the model
      the tools of 1 MCP server are not counted: `check` queries no server, `toolcrib tools` does
        say  -, writes, toolcrib.toml:13
        list_notes  -, reads, plugins/notes/plugin.toml:5 (plugin `notes`)
      skill reading (plugin `notes`): list_notes
      plugin notes: 1 declared tool
      personality bare
      1 policy rule
      MCP server small (plugin `notes`): python3 ./tests/fixtures/mcp_server.py small
      no model is named; `run` uses your default of `models add`, or else the first configured one
    ");
    let (_, checked) = project.json(&["check"]);
    assert_eq!(checked["plugins"], json!(["notes"]));
    for part in ["tools", "skills", "mcp_servers"] {
        let plugins: Vec<_> =
            checked[part].as_array().unwrap().iter().map(|one| &one["plugin"]).collect();
        assert_eq!(plugins.last().unwrap(), &&json!("notes"), "{part}");
    }
    let outcome = project.toolcrib(&["skills"]);
    assert!(outcome.stdout.starts_with("reading (plugin `notes`)  Reads notes."));
    let outcome = project.toolcrib(&["tools"]);
    insta::assert_snapshot!(outcome.stdout, @"
    no toolset
      say  Says.
        writes, from toolcrib.toml:13
      list_notes  Lists the notes.
        reads, from plugins/notes/plugin.toml:5 (plugin `notes`)
    mcp
      mcp__small__add  Adds two numbers.
        writes, may destroy, from mcp:small (plugin `notes`), remote
      mcp__small__dangling  Refers to nothing.
        writes, may destroy, from mcp:small (plugin `notes`), remote
      mcp__small__echo  Says it again.
        writes, may destroy, from mcp:small (plugin `notes`), remote
      mcp__small__fail  Fails.
        writes, may destroy, from mcp:small (plugin `notes`), remote
      mcp__small__mark  Tells what stands in its environment.
        writes, may destroy, from mcp:small (plugin `notes`), remote
      mcp__small__picture  Gives an image and no text.
        writes, may destroy, from mcp:small (plugin `notes`), remote
    8 tools, 6 of them remote
    ");
    let (_, listed) = project.json(&["tools"]);
    let plugins: Vec<_> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["plugin"].clone()).collect();
    assert_eq!(plugins[..2], [Value::Null, json!("notes")]);
    assert!(plugins[2..].iter().all(|plugin| plugin == "notes"), "{listed}");
}

#[test]
fn menu_and_explain_name_the_reason_of_a_withheld_plugin_tool() {
    let project = project();
    let outcome = project.toolcrib(&["explain", "list_notes", "--personality", "bare"]);
    insta::assert_snapshot!(outcome.stdout, @"
    list_notes is withheld by personality
      source       passed    comes from plugins/notes/plugin.toml:5 (plugin `notes`)
      personality  withheld  personality `bare` does not list plugin `notes` in `plugins`
    to offer it: personality `default`
    ");
    let outcome = project.toolcrib(&["explain", "mcp__small__echo", "--tenant", "acme"]);
    insta::assert_snapshot!(outcome.stdout, @"
    mcp__small__echo is withheld by policy
      source       passed    comes from mcp:small (plugin `notes`)
      personality  passed    personality `default` reaches it
      policy       withheld  policy rule 1 (toolcrib.toml:9) denies it
    to offer it: no tenant, or one that no rule names
    ");
    let (_, menu) = project.json(&["menu", "--why"]);
    let offered = menu["offered"].as_array().unwrap();
    let of_plugin = offered.iter().filter(|tool| tool["plugin"] == "notes").count();
    assert_eq!((offered[0]["plugin"].clone(), of_plugin), (Value::Null, offered.len() - 2));
    let source = |tool: &str| {
        let explanations = menu["why"].as_array().unwrap();
        explanations.iter().find(|why| why["tool"] == tool).unwrap()["chain"][0]["text"].clone()
    };
    assert_eq!(source("list_notes"), "comes from plugins/notes/plugin.toml:5 (plugin `notes`)");
    assert_eq!(source("mcp__small__echo"), "comes from mcp:small (plugin `notes`)");
}

#[test]
fn a_call_runs_in_the_plugins_folder_and_its_findings_are_told() {
    let project = project();
    let outcome = project.toolcrib(&["call", "list_notes"]);
    assert_eq!((outcome.code, outcome.stdout.contains("plugin.toml")), (Some(0), true));
    let outcome = project.toolcrib(&["call", "list_notes", "--personality", "bare"]);
    assert_eq!(outcome.code, Some(1));
    let (code, report) = project.json(&["lint"]);
    assert_eq!(code, Some(1), "{report}");
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["tool"] == "list_notes"), "{report}");
}

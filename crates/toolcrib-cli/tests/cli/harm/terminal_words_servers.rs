//! A silent terminal while servers are queried.

use crate::support::Project;

/// One server that answers, and one that hangs for two seconds before it counts as failed.
fn project() -> Project {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/stateful_server.py");
    let file = format!(
        "[mcp.quick]\ncommand = 'python3'\nargs = ['{script}', 'quick']\n\
         [mcp.slow]\ncommand = 'python3'\nargs = ['{script}', 'slow']\n\
         env = {{ HANG = '1' }}\nstart_timeout = '6s'\n"
    );
    Project::of(&[("toolcrib.toml", &file)])
}

#[test]
fn nothing_was_said_while_a_server_was_waited_for() {
    let project = project();
    for args in [&["mcp", "list"][..], &["menu"]] {
        let shown = project.toolcrib(args);
        let said = shown.stderr.lines().find(|line| line.starts_with("waiting for MCP server"));
        let said = said.unwrap_or_else(|| panic!("{args:?}: {}", shown.stderr));
        assert!(said.contains("slow"), "{said}");
        assert!(!shown.stdout.contains("waiting for"), "{}", shown.stdout);
    }
}

#[test]
fn a_line_for_people_came_where_programs_read() {
    let project = project();
    let shown = project.toolcrib(&["mcp", "list", "--json"]);
    serde_json::from_str::<serde_json::Value>(&shown.stdout).unwrap();
    assert_eq!(shown.stderr, "");
    let quiet = project.toolcrib(&["mcp", "list", "--quiet"]);
    assert!(!quiet.stderr.contains("waiting for"), "{}", quiet.stderr);
}

//! A pinned server that lists more tools than it did.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    gateway::{Piped, message},
    support::{Project, python_server, wait_for},
};

/// A server with the tools of its file, which announces a change in each call.
const SERVER: &str = r#"
def answer(method, params):
    names = open(sys.argv[1], encoding="utf-8").read().split()
    if method == "initialize":
        return {"capabilities": {"tools": {"listChanged": True}}}
    if method == "tools/list":
        open(sys.argv[1] + ".lists", "a", encoding="utf-8").write(" ".join(names) + "\n")
        return {"tools": [{"name": name, "description": "Does a thing.",
                           "inputSchema": {"type": "object"}} for name in names]}
    if method == "tools/call":
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        print(json.dumps(changed), flush=True)
        return {"content": [{"type": "text", "text": "called " + params["name"]}]}
"#;

fn server(name: &str, settings: &str) -> String {
    format!("[mcp.{name}]\ncommand = 'python3'\nargs = ['server.py', '{name}.txt']\n{settings}\n")
}

fn project(settings: &str) -> Project {
    let file = format!("policy_default = 'allow'\n{}{settings}\n", server("s", ""));
    Project::of(&[
        ("toolcrib.toml", &file),
        ("server.py", &python_server(SERVER)),
        ("s.txt", "one"),
    ])
}

/// Has the server announce that its list has changed.
fn announce(client: &mut Piped, id: u32) {
    let params = json!({ "name": "mcp__s__one", "arguments": {} });
    let answer = client.ask(&message(id, "tools/call", &params));
    assert!(answer.to_string().contains("called one"), "{answer}");
}

/// Waits until a server has answered so many lists with these tools.
fn listed(project: &Project, server: &str, tools: &str, times: usize) {
    let lists = project.path().join(format!("{server}.txt.lists"));
    wait_for(|| {
        let all = fs::read_to_string(&lists).unwrap_or_default();
        all.lines().filter(|line| *line == tools).count() >= times
    });
}

fn called(client: &mut Piped, tool: &str) -> Value {
    client.ask(&message(99, "tools/call", &json!({ "name": tool, "arguments": {} })))
}

fn pins(project: &Project) -> String {
    fs::read_to_string(project.path().join("toolcrib.lock")).unwrap()
}

#[test]
fn a_new_tool_waits_until_it_is_accepted() {
    let project = project("");
    let mut client = Piped::start(&mut project.command(&["serve"]));
    wait_for(|| client.tools() == ["mcp__s__one"]);
    project.write("s.txt", "one two");
    announce(&mut client, 10);
    listed(&project, "s", "one two", 1);
    announce(&mut client, 11);
    // The first of these lists was used when the second was requested.
    listed(&project, "s", "one two", 2);
    let diff = project.toolcrib(&["lock", "diff"]);
    assert!(diff.code == Some(1) && diff.stdout.contains("two"), "{}", diff.stdout);
    assert_eq!(client.tools(), ["mcp__s__one"]);
    assert!(!called(&mut client, "mcp__s__two").to_string().contains("called two"));
    assert!(!pins(&project).contains("two"), "{}", pins(&project));

    let accepted = project.toolcrib(&["lock", "accept", "s", "two"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.stderr);
    wait_for(|| client.tools() == ["mcp__s__one", "mcp__s__two"]);
    assert!(called(&mut client, "mcp__s__two").to_string().contains("called two"));
    let (_, said) = client.end();
    assert!(said.contains("tool two is new since its server was pinned"), "{said}");
}

#[test]
fn a_tool_that_came_while_no_gateway_ran_waits_too_also_on_another_machine() {
    let project = project("");
    let mut client = Piped::start(&mut project.command(&["serve"]));
    wait_for(|| client.tools() == ["mcp__s__one"]);
    client.end();
    project.write("s.txt", "one two");
    let elsewhere = project.path().join("home");
    for config in [None, Some(&*elsewhere)] {
        let mut client = Piped::start(&mut started(&project, config));
        wait_for(|| client.tools() == ["mcp__s__one"]);
        assert!(!called(&mut client, "mcp__s__two").to_string().contains("called two"));
        client.end();
    }
}

fn started(project: &Project, config: Option<&Path>) -> std::process::Command {
    let mut command = project.command(&["serve"]);
    config.into_iter().for_each(|config| {
        command.env("XDG_CONFIG_HOME", config);
    });
    command
}

#[test]
fn new_tools_enter_where_the_project_accepts_them_or_does_not_pin() {
    for project in [project("[serve]\nnew_tools = 'accept'"), project("pin = false")] {
        let mut client = Piped::start(&mut project.command(&["serve"]));
        wait_for(|| client.tools() == ["mcp__s__one"]);
        project.write("s.txt", "one two");
        announce(&mut client, 10);
        wait_for(|| client.tools() == ["mcp__s__one", "mcp__s__two"]);
        client.end();
    }
}

#[test]
fn a_server_that_comes_late_is_pinned_by_its_first_list_and_asks_from_then_on() {
    let project = project("");
    let mut client = Piped::start(&mut project.command(&["serve"]));
    wait_for(|| client.tools() == ["mcp__s__one"]);
    let file = fs::read_to_string(project.path().join("toolcrib.toml")).unwrap();
    project.write("late.txt", "first");
    project.write("toolcrib.toml", &format!("{file}{}", server("late", "")));
    wait_for(|| client.tools().contains(&"mcp__late__first".to_owned()));
    project.write("late.txt", "first second");
    let params = json!({ "name": "mcp__late__first", "arguments": {} });
    client.ask(&message(20, "tools/call", &params));
    listed(&project, "late", "first second", 1);
    client.ask(&message(21, "tools/call", &params));
    listed(&project, "late", "first second", 2);
    assert!(!client.tools().contains(&"mcp__late__second".to_owned()));
    let (_, said) = client.end();
    assert!(said.contains("tool second is new since its server was pinned"), "{said}");
}

#[test]
fn a_server_without_any_tool_has_listed_none() {
    let project = project("");
    project.write("other.txt", "");
    let file = fs::read_to_string(project.path().join("toolcrib.toml")).unwrap();
    project.write("toolcrib.toml", &format!("{file}{}", server("other", "")));
    let mut client = Piped::start(&mut project.command(&["serve"]));
    wait_for(|| client.tools() == ["mcp__s__one"]);
    project.write("other.txt", "late");
    // The list of the other server is read again when the pins change.
    project.write("s.txt", "one two");
    let accepted = project.toolcrib(&["lock", "accept", "s", "two"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.stderr);
    wait_for(|| client.tools() == ["mcp__s__one", "mcp__s__two"]);
    listed(&project, "other", "late", 1);
    announce(&mut client, 10);
    assert!(!client.tools().contains(&"mcp__other__late".to_owned()));
    client.end();
}

//! MCP servers of a project: listed, tested, called, and nothing of them left afterwards.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::support::{Outcome, Project, toolcrib};

/// The fixture as it stands in the project's file.
fn server() -> String {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/fixtures/mcp_server.py");
    fixtures.to_owned()
}

/// A project with one sound server, one that is no program, and a rule.
fn project(more: &str) -> Project {
    let file = format!(
        r#"
policy_default = "allow"

[mcp.small]
command = "python3"
args = ["{script}", "small"]
env = {{ MARK = "secret:MARK", LOG = "started.log" }}
exclude = ["add"]
trusted = true

{more}

[secrets]
MARK = {{ env = "TOOLCRIB_TEST_MARK" }}

[[policy]]
effect = "deny"
tool = "mcp__small__fail"
reason = "It only fails."
"#,
        script = server()
    );
    Project::of(&[("toolcrib.toml", &file)])
}

const MARK: &str = "hush-71c2f0";

fn run(project: &Project, args: &[&str]) -> Outcome {
    project.command(args).env("TOOLCRIB_TEST_MARK", MARK).output().unwrap().into()
}

fn json(project: &Project, args: &[&str]) -> (Option<i32>, Value) {
    let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
    let outcome = run(project, &args);
    let value = serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", outcome.stdout, outcome.stderr));
    (outcome.code, value)
}

/// How often the fixture did something, by its log.
fn times(project: &Project, what: &str) -> usize {
    let log = fs::read_to_string(project.path().join("started.log")).unwrap();
    log.lines().filter(|line| line.contains(what)).count()
}

/// Whether a process still runs in the project's folder.
fn is_left(project: &Project) -> bool {
    let dir = project.path().canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let cwd = |path: PathBuf| fs::read_link(path.join("cwd")).ok();
    processes.filter_map(|process| cwd(process.path())).any(|cwd| cwd == dir)
}

#[test]
fn the_menu_has_the_tools_of_servers_and_says_where_each_is_from() {
    let project = project("");
    let (code, menu) = json(&project, &["menu"]);
    assert_eq!(code, Some(0));
    let names = |list: &Value, key: &str| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&menu["offered"], "name"), ["mcp__small__echo", "mcp__small__mark"]);
    assert_eq!(names(&menu["offered"], "origin"), ["mcp:small", "mcp:small"]);
    assert_eq!(menu["offered"][0]["annotations"]["read_only"], json!(true));
    assert_eq!(menu["offered"][0]["untrusted"], json!(true));
    let mut withheld = names(&menu["withheld"], "name");
    withheld.sort();
    assert_eq!(withheld, ["mcp__small__add", "mcp__small__broken", "mcp__small__fail"]);
    let why = run(&project, &["menu", "--why"]).stdout;
    for words in ["mcp__small__fail", "It only fails.", "from mcp:small", "`exclude`"] {
        assert!(why.contains(words), "{words}: {why}");
    }
    assert!(!is_left(&project));
}

#[test]
fn a_call_goes_through_the_pipe_and_its_secrets_are_not_seen() {
    let project = project("");
    let (code, called) = json(&project, &["call", "mcp__small__echo", "text=hello"]);
    assert_eq!((code, &called["value"]), (Some(0), &json!("hello")));
    let (code, called) = json(&project, &["mcp", "call", "small", "mark"]);
    assert_eq!(code, Some(0));
    let value = called["value"].as_str().unwrap();
    assert!(value.starts_with("mark=[redacted] cwd="), "{value}");
    let (code, called) = json(&project, &["mcp", "call", "small", "fail"]);
    assert_eq!((code, &called["code"]), (Some(1), &json!("not_available")));
    let (code, called) = json(&project, &["mcp", "call", "small", "echo", "text:=1"]);
    assert_eq!((code, &called["code"]), (Some(1), &json!("input_invalid")));
    let (code, problem) = json(&project, &["mcp", "call", "smal", "echo"]);
    assert_eq!(code, Some(2));
    let message = &problem["error"]["message"];
    assert_eq!(message, "there is no MCP server `smal`; did you mean `small`?");
    assert_eq!((times(&project, " start"), times(&project, " call ")), (4, 2));
    assert!(!is_left(&project));
}

#[test]
fn servers_are_listed_with_what_became_of_each() {
    let more = format!(
        "[mcp.gone]\ncommand = 'python3'\nargs = ['{}', 'gone']\n\
         env = {{ SCENE = 'crash' }}\non_failure = 'omit'\n",
        server()
    );
    let project = project(&more);
    let (code, listed) = json(&project, &["mcp", "list"]);
    assert_eq!(code, Some(0));
    let [small, gone] = listed["servers"].as_array().unwrap().as_slice() else {
        panic!("{listed}")
    };
    assert_eq!(small["server"], json!("small"));
    assert_eq!(small["server_version"], json!("1.2.3"));
    assert_eq!((&small["tool_count"], &small["held_back_count"]), (&json!(3), &json!(2)));
    assert_eq!((&gone["ok"], &gone["on_failure"]), (&json!(false), &json!("omit")));
    let error = gone["error"].as_str().unwrap();
    assert!(error.contains("this server does not start"), "{error}");

    let shown = run(&project, &["mcp", "test", "small"]);
    assert_eq!(shown.code, Some(0));
    assert!(shown.stdout.contains("mcp__small__broken  held back:"), "{}", shown.stdout);
    let failed = run(&project, &["mcp", "test", "gone"]);
    assert_eq!(failed.code, Some(1), "{}", failed.stdout);
    let menu = run(&project, &["menu"]);
    assert_eq!(menu.code, Some(0), "{}", menu.stderr);
    assert!(menu.stderr.contains("left out"), "{}", menu.stderr);
    assert!(menu.stdout.contains("mcp__gone__*"), "{}", menu.stdout);
    assert!(!is_left(&project));
}

#[test]
fn a_server_that_fails_is_a_failed_menu_unless_it_is_said_otherwise() {
    let more = format!(
        "[mcp.gone]\ncommand = 'python3'\nargs = ['{}']\nenv = {{ SCENE = 'crash' }}\n",
        server()
    );
    let project = project(&more);
    let (code, problem) = json(&project, &["menu"]);
    assert_eq!(code, Some(1));
    assert_eq!(problem["error"]["code"], json!("discovery_failed"));
    assert!(problem["error"]["message"].as_str().unwrap().contains("mcp:gone"), "{problem}");
}

#[test]
fn without_its_secret_a_server_fails_and_says_which() {
    let outcome = project("").toolcrib(&["menu"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("TOOLCRIB_TEST_MARK"), "{}", outcome.stderr);
    let project = project("");
    let checked = project.toolcrib(&["check"]);
    assert_eq!(checked.code, Some(0));
    assert!(checked.stdout.contains("MCP server small"), "{}", checked.stdout);
    assert!(!project.path().join("started.log").exists(), "check starts nothing");
}

#[test]
fn a_file_is_imported_with_no_project_at_all() {
    let folder = Project::of(&[(
        ".mcp.json",
        &json!({ "mcpServers": {
            "my files": { "command": "python3", "args": [server()], "env": { "MARK": "${NO:-x}" } },
            "gone": { "command": "${TOOLCRIB_TEST_MARK:-toolcrib-no-such-program}" },
        } })
        .to_string(),
    )]);
    let in_folder = |args: &[&str]| -> Outcome {
        let mut command = toolcrib();
        command.args(args).args(["--import", ".mcp.json"]).current_dir(folder.path());
        command.env("XDG_STATE_HOME", folder.path().join("states")).output().unwrap().into()
    };
    let menu = in_folder(&["menu"]);
    assert_eq!(menu.code, Some(0), "{}", menu.stderr);
    assert!(menu.stdout.contains("mcp__my_files__echo"), "{}", menu.stdout);
    assert!(menu.stderr.contains("`my files` is called `my_files` here"), "{}", menu.stderr);
    let called = in_folder(&["mcp", "call", "my_files", "mark"]);
    let dir = folder.path().canonicalize().unwrap();
    let words = format!("mark=x cwd={} names=", dir.display());
    assert!(called.stdout.starts_with(&words), "{}{}", called.stdout, called.stderr);
    assert!(!folder.path().join("states").exists(), "nothing had to be written");
    let mut missing = toolcrib();
    missing.args(["menu", "--import", "mpc.json"]).current_dir(folder.path());
    let missing = Outcome::from(missing.output().unwrap());
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("`--import`: mpc.json: it is not there"), "{}", missing.stderr);
    assert!(!is_left(&folder));
}

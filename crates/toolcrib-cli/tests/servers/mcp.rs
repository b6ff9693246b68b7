//! MCP servers of a project: listed, tested, called, and nothing of them left afterwards.

use std::{fs, path::PathBuf, process::Stdio};

use serde_json::{Value, json};

use crate::{
    gateway::Http,
    mcp_server::server,
    support::{Outcome, Project, toolcrib, wait_for},
};

/// A project with one working server, one that is not a program, and a rule.
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
    processes_in(project).next().is_some()
}

/// The processes that run in the folder of the project.
fn processes_in(project: &Project) -> impl Iterator<Item = PathBuf> {
    let dir = project.path().canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
    processes.filter(move |path| fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == dir))
}

#[test]
fn the_menu_has_the_tools_of_servers_and_says_where_each_is_from() {
    let project = project("");
    let (code, menu) = json(&project, &["menu"]);
    assert_eq!(code, Some(0));
    let names = |list: &Value, key: &str| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        names(&menu["offered"], "name"),
        ["mcp__small__echo", "mcp__small__mark", "mcp__small__picture"]
    );
    assert_eq!(names(&menu["offered"], "origin"), ["mcp:small", "mcp:small", "mcp:small"]);
    assert_eq!(menu["offered"][0]["annotations"]["read_only"], json!(true));
    assert_eq!(menu["offered"][0]["untrusted"], json!(true));
    let mut withheld = names(&menu["withheld"], "name");
    withheld.sort();
    assert_eq!(
        withheld,
        ["mcp__small__add", "mcp__small__broken", "mcp__small__dangling", "mcp__small__fail"]
    );
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
    assert_eq!(message, "unknown MCP server `smal`; did you mean `small`?");
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
    assert_eq!((&small["tool_count"], &small["withheld_count"]), (&json!(4), &json!(3)));
    assert_eq!((&gone["ok"], &gone["on_failure"]), (&json!(false), &json!("omit")));
    let error = gone["error"].as_str().unwrap();
    assert!(error.contains("this server does not start"), "{error}");

    let shown = run(&project, &["mcp", "test", "small"]);
    assert_eq!(shown.code, Some(0));
    assert!(shown.stdout.contains("mcp__small__broken  withheld:"), "{}", shown.stdout);
    // The list contains it, but an engine cannot enforce its schema, so it is not offered.
    let dangling = "mcp__small__dangling  withheld: its schema cannot be enforced";
    assert!(shown.stdout.contains(dangling), "{}", shown.stdout);
    let failed = run(&project, &["mcp", "test", "gone"]);
    assert_eq!(failed.code, Some(1), "{}", failed.stdout);
    let menu = run(&project, &["menu"]);
    assert_eq!(menu.code, Some(0), "{}", menu.stderr);
    assert!(menu.stderr.contains("left out"), "{}", menu.stderr);
    assert!(menu.stdout.contains("mcp__gone__*"), "{}", menu.stdout);
    let called = run(&project, &["mcp", "call", "gone", "echo"]);
    assert_eq!(called.code, Some(1));
    assert!(called.stderr.contains("this server does not start"), "{}", called.stderr);
    assert!(!called.stderr.contains("did you mean"), "{}", called.stderr);
    let (_, called) = json(&project, &["mcp", "call", "gone", "echo"]);
    assert!(called["cause"].as_str().unwrap().contains("this server does not start"), "{called}");
    assert!(!is_left(&project));
}

#[test]
fn a_server_that_fails_is_a_failed_menu_where_that_is_declared() {
    let more = format!(
        "[mcp.gone]\ncommand = 'python3'\nargs = ['{}']\nenv = {{ SCENE = 'crash' }}\n\
         on_failure = 'fail'\n",
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
    assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("TOOLCRIB_TEST_MARK"), "{}", outcome.stderr);
    let project = project("");
    let checked = project.toolcrib(&["check"]);
    assert_eq!(checked.code, Some(0));
    assert!(checked.stdout.contains("MCP server small"), "{}", checked.stdout);
    assert!(!project.path().join("started.log").exists(), "check starts nothing");
}

#[test]
fn arguments_that_look_like_secrets_are_masked() {
    let key = "a1B2c3D4e5F6g7H8i9J0k1L2";
    let token = format!("sbp_{key}");
    let args =
        json!([server(), "small", "--access-token", token, format!("ghp_{key}"), "--read-only",]);
    let file = json!({ "mcpServers": { "keyed": { "command": "python3", "args": args } } });
    let folder = Project::of(&[("keyed.json", &file.to_string())]);
    let shown = "small --access-token … … --read-only";
    for more in [&["mcp", "list"][..], &["mcp", "list", "--json"], &["mcp", "test", "keyed"]] {
        let mut command = toolcrib();
        command.args(more).args(["--import", "keyed.json"]).current_dir(folder.path());
        let listed = Outcome::from(command.output().unwrap());
        assert_eq!(listed.code, Some(0), "{}", listed.stderr);
        assert!(listed.stdout.contains(shown), "{}", listed.stdout);
        let all = format!("{}{}", listed.stdout, listed.stderr);
        assert!(!all.contains(key), "{all}");
    }
}

/// The number of running servers of the project. Their own process ids are those of a namespace.
fn servers(project: &Project) -> usize {
    let is_server = |process: &PathBuf| {
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("mcp_server.py")
    };
    processes_in(project).filter(is_server).count()
}

#[test]
fn a_server_of_a_client_alone_ends_with_the_session_of_the_client() {
    let token = "a-token-of-a-test-0001";
    let more = "[[serve.token]]\nsecret = 'secret:A'\nprincipal = 'ana'\n\
                [[serve.token]]\nsecret = 'secret:B'\nprincipal = 'bob'\n";
    let project = project(more);
    let file = fs::read_to_string(project.path().join("toolcrib.toml")).unwrap();
    let file = file.replace("trusted = true", "trusted = true\nsession = 'client'");
    let secrets = "[secrets]\nA = { env = 'TOOLCRIB_TEST_A' }\nB = { env = 'TOOLCRIB_TEST_B' }";
    project.write("toolcrib.toml", &file.replace("[secrets]", secrets));
    let mut command = project.command(&["serve"]);
    command.env("TOOLCRIB_TEST_A", token).env("TOOLCRIB_TEST_B", "a-token-of-a-test-0002");
    command.env("TOOLCRIB_TEST_MARK", MARK);
    let errors = project.path().join("errors.txt");
    let http = Http::start(&mut command, &errors);
    let call = json!({ "name": "mcp__small__echo", "arguments": { "text": "hello" } });
    let calls = |session: &str| {
        let (status, answer) = http.post(Some(token), "tools/call", &call, Some(session));
        assert!(status == "200" && answer.contains("hello"), "{answer}");
    };
    // The lists that the gateway prints at its start have sessions too.
    let is_listed = || fs::read_to_string(&errors).unwrap().contains("✓ small");
    wait_for(is_listed);
    let at_start = servers(&project);
    let ended = http.begin(token);
    calls(&ended);
    let with_one = servers(&project);
    let other = http.begin(token);
    calls(&other);
    let with_both = servers(&project);
    assert!(at_start < with_one && with_one < with_both, "{at_start} {with_one} {with_both}");
    assert_eq!(http.delete(token, &ended), "202");
    wait_for(|| servers(&project) == with_one);
    // The other session still has its server, and not another one.
    let starts = times(&project, "start");
    calls(&other);
    assert_eq!((times(&project, "start"), servers(&project)), (starts, with_one));
    assert_eq!(http.end(), Some(0));
    wait_for(|| !is_left(&project));
}

#[test]
fn parts_that_are_no_plain_text_are_shown_as_a_model_reads_them() {
    let project = project("");
    let shown = run(&project, &["mcp", "call", "small", "picture"]);
    assert_eq!((shown.code, &*shown.stdout), (Some(0), "[image image/png, 3 bytes]\n"));
    let (_, called) = json(&project, &["mcp", "call", "small", "picture"]);
    assert_eq!(called["blocks"], json!(["[image image/png, 3 bytes]"]));
}

#[test]
fn servers_start_with_a_quiet_gateway() {
    let project = project("");
    let mut command = project.command(&["serve", "--quiet"]);
    command.env("TOOLCRIB_TEST_MARK", MARK).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    wait_for(|| {
        let log = fs::read_to_string(project.path().join("started.log"));
        log.is_ok_and(|log| log.contains(" start"))
    });
    drop(child.stdin.take());
    child.wait().unwrap();
    // It was ended while it was still being connected to.
    wait_for(|| !is_left(&project));
}

#[test]
fn an_import_within_a_project_needs_an_explicit_choice() {
    let project = project("");
    let file = json!({ "mcpServers": {
        "more": { "command": "python3", "args": [server()] },
        "old": { "type": "sse", "url": "https://a.example/sse" },
    } });
    project.write("more.json", &file.to_string());
    let here = |args: &[&str]| -> Outcome {
        let mut command = toolcrib();
        command.args(args).args(["--import", "more.json"]).current_dir(project.path());
        command.env("TOOLCRIB_TEST_MARK", MARK).output().unwrap().into()
    };
    let refused = here(&["menu"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(refused.stderr.contains("`--no-project`"), "{}", refused.stderr);
    let alone = here(&["menu", "--no-project"]);
    assert_eq!(alone.code, Some(0), "{}", alone.stderr);
    assert!(alone.stdout.contains("mcp__more__echo") && !alone.stdout.contains("mcp__small"));
    assert!(alone.stdout.contains("mcp__old__*"), "{}", alone.stdout);
    assert!(alone.stderr.contains("`old` uses HTTP+SSE"), "{}", alone.stderr);
    let beside = here(&["menu", "--project", "."]);
    assert_eq!(beside.code, Some(0), "{}", beside.stderr);
    assert!(beside.stdout.contains("mcp__more__echo") && beside.stdout.contains("mcp__small"));
}

#[test]
fn a_file_that_is_not_json_names_the_formats() {
    let folder = Project::of(&[
        ("goose.yaml", "extensions:\n  small:\n    cmd: python3\n"),
        ("codex", "[mcp_servers.small]\ncommand = 'python3'\n"),
        ("cut.json", "{ \"mcpServers\": { \"small\": {"),
    ]);
    let said = |file: &str| {
        let mut command = toolcrib();
        command.args(["mcp", "list", "--import", file]).current_dir(folder.path());
        let outcome = Outcome::from(command.output().unwrap());
        assert_eq!(outcome.code, Some(2), "{}", outcome.stdout);
        outcome.stderr
    };
    insta::assert_snapshot!(["goose.yaml", "codex", "cut.json"].map(said).concat());
}

#[test]
fn only_an_imported_server_is_trusted_on_the_command_line() {
    let own = project("");
    own.write("more.json", r#"{ "mcpServers": {} }"#);
    let file = own.path().join("more.json");
    let args = ["menu", "--import", file.to_str().unwrap(), "--trust", "small"];
    let own = own.toolcrib(&args);
    assert_eq!(own.code, Some(2), "{}", own.stdout);
    let reason = "`--trust small`: no file of `--import` declares this server";
    assert!(own.stderr.contains(reason), "{}", own.stderr);
    let logs = project("").toolcrib(&["mcp", "logs", "small", "--json"]);
    assert_eq!(logs.code, Some(2), "{}", logs.stderr);
    assert!(logs.stdout.contains("remove `--json`"), "{}", logs.stdout);
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
    assert!(menu.stderr.contains("`my files` is named `my_files` here"), "{}", menu.stderr);
    let called = in_folder(&["mcp", "call", "my_files", "mark"]);
    let dir = folder.path().canonicalize().unwrap();
    let words = format!("mark=x cwd={} names=", dir.display());
    assert!(called.stdout.starts_with(&words), "{}{}", called.stdout, called.stderr);
    assert!(!folder.path().join("states").exists(), "nothing had to be written");
    let mut missing = toolcrib();
    missing.args(["menu", "--import", "mpc.json"]).current_dir(folder.path());
    let missing = Outcome::from(missing.output().unwrap());
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("`--import`: mpc.json: it does not exist"),
        "{}",
        missing.stderr
    );
    assert!(!is_left(&folder));
}

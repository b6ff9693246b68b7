//! The gateway as a client meets it: pipes and HTTP.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::Stdio,
};

use serde_json::{Value, json};

use crate::{
    gateway::{Http, Piped, message, terminate},
    support::{Project, toolcrib, wait_for},
};

/// The support desk's tools with a token of a secret's, or not.
fn desk(tokens: &str) -> Project {
    let project = Project::desk();
    let file = fs::read_to_string(project.path().join("toolcrib.toml")).unwrap();
    project.write("toolcrib.toml", &format!("{file}\n{tokens}"));
    project
}

#[test]
fn a_client_on_stdio_gets_the_menu_of_its_identity() {
    let project = desk("");
    let log = project.path().join("access.jsonl");
    let events = project.path().join("events.jsonl");
    let mut command = project.command(&["serve", "--skill", "billing"]);
    command.arg("--access-log").arg(&log).arg("--events").arg(&events);
    let mut client = Piped::start(&mut command);
    let menu: Value = project.json(&["menu", "--skill", "billing"]).1;
    let offered = menu["offered"].as_array().unwrap().iter();
    let offered: Vec<_> = offered.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(client.tools(), offered);
    let call = json!({ "name": "list_charges", "arguments": { "order_id": 1042 } });
    let answer = client.ask(&message(3, "tools/call", &call));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(r#""charge_id":74,"amount_cents":12900"#), "{answer}");
    let answer = client.ask(&message(4, "tools/call", &json!({ "name": "nothing" })));
    assert_eq!(answer["error"]["code"], json!(-32602), "{answer}");
    let (code, said) = client.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("offered"), "{said}");
    let log = fs::read_to_string(log).unwrap();
    let log: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let called: Vec<_> = log.iter().filter(|entry| entry["method"] == "tools/call").collect();
    assert_eq!(called[0]["tool"], json!("list_charges"));
    assert_eq!(called[1]["code"], json!("not_available"));
    let events = fs::read_to_string(events).unwrap();
    assert!(events.lines().any(|line| line.contains("\"tool.end\"")), "{events}");
}

#[test]
fn a_signal_ends_the_gateway_in_order() {
    let project = desk("");
    let client = Piped::start(&mut project.command(&["serve", "--quiet"]));
    terminate(&client.child);
    let (code, said) = client.wait();
    assert_eq!((code, &*said), (Some(0), ""));
}

#[test]
fn serve_refuses_json_and_http_flags_without_http() {
    let project = desk("");
    for args in
        [&["serve", "--json"][..], &["serve", "--allow-host", "x"], &["serve", "--http", "x"]]
    {
        assert_eq!(project.toolcrib(args).code, Some(2), "{args:?}");
    }
}

#[test]
fn help_lists_json_for_commands_that_print_it() {
    let help = |command: &[&str]| {
        let output = toolcrib().args(command).arg("--help").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for command in
        [&["serve"][..], &["acp"], &["chat"], &["completions"], &["man"], &["mcp", "logs"]]
    {
        let help = help(command);
        assert!(help.contains("Usage: toolcrib ") && !help.contains("--json "), "{help}");
        let words: &[&str] = if command == ["completions"] { &["bash"] } else { &[] };
        let words = if command.len() == 2 { &["small"] } else { words };
        let refused = toolcrib().args(command).args(words).arg("--json").output().unwrap();
        let error: Value = serde_json::from_slice(&refused.stdout).unwrap();
        assert_eq!((refused.status.code(), &error["error"]["code"]), (Some(2), &json!("usage")));
    }
    assert!(help(&["run"]).contains("--json "));
}

#[test]
fn the_printed_command_for_the_reasons_is_complete() {
    let folder = Project::of(&[(
        "some servers.json",
        &json!({ "mcpServers": { "small": {
            "command": "python3", "args": [crate::mcp_server::server(), "small"], "includeTools": ["echo"],
        } } })
        .to_string(),
    )]);
    let file = folder.path().join("some servers.json");
    let import = format!("--import '{}' --trust small", file.display());
    let of_file = |args: &[&str]| {
        let mut command = toolcrib();
        command.args(args).arg("--import").arg(&file).args(["--trust", "small"]);
        command.current_dir(folder.path());
        command
    };
    let errors = folder.path().join("errors.txt");
    let http = Http::start(&mut of_file(&["serve", "--as", "ann"]), &errors);
    let said = format!("(`toolcrib menu --why {import} --as ann` says why)");
    wait_for(|| fs::read_to_string(&errors).unwrap().contains(&said));
    assert_eq!(http.end(), Some(0));
    let lint = of_file(&["lint"]).output().unwrap();
    let said = format!("`toolcrib mcp test small {import}` says why");
    let lint = String::from_utf8(lint.stderr).unwrap();
    assert!(lint.contains(&said), "{lint}");
}

#[test]
fn over_http_a_token_is_made_and_required() {
    let project = desk("");
    let errors = project.path().join("errors.txt");
    let http = Http::start(&mut project.command(&["serve", "--as", "intern"]), &errors);
    let token = fs::read_to_string(project.state().join("serve-token")).unwrap();
    let token = token.trim();
    assert!(!fs::read_to_string(&errors).unwrap().contains(token), "it is not printed");
    assert_eq!(http.list(None).0, "401");
    assert_eq!(http.list(Some("0123456789abcdef")).0, "401");
    let (status, answer) = http.list(Some(token));
    assert_eq!(status, "200", "{answer}");
    assert!(answer.contains("list_charges"), "{answer}");
    assert_eq!(http.end(), Some(0));

    let shown = Http::start(&mut project.command(&["serve", "--show-token"]), &errors);
    wait_for(|| fs::read_to_string(&errors).unwrap().contains(token));
    assert_eq!(shown.list(Some(token)).0, "200");
    assert_eq!(shown.end(), Some(0));
}

#[test]
fn declared_tokens_replace_the_generated_token() {
    let tokens = "[secrets]\nA = { env = 'TOOLCRIB_TEST_A' }\n\
                  [[serve.token]]\nsecret = 'secret:A'\nprincipal = 'intern'\n";
    let project = desk(tokens);
    let errors = project.path().join("errors.txt");
    let token = "a-token-of-a-test-0001";
    let mut command = project.command(&["serve"]);
    let http = Http::start(command.env("TOOLCRIB_TEST_A", token), &errors);
    assert_eq!(http.list(Some(token)).0, "200");
    assert_eq!(http.end(), Some(0));
    assert!(!project.state().join("serve-token").exists());

    let refused = project.toolcrib(&["serve", "--http", "0"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("TOOLCRIB_TEST_A"), "{}", refused.stderr);
    let mut refused = project.command(&["serve", "--http", "0", "--as", "x"]);
    let refused = refused.env("TOOLCRIB_TEST_A", token).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let mut short = project.command(&["serve", "--http", "0"]);
    let short = short.env("TOOLCRIB_TEST_A", "short").output().unwrap();
    assert_eq!(short.status.code(), Some(2), "{}", String::from_utf8_lossy(&short.stderr));
}

#[test]
fn serve_prints_the_menu_of_each_declared_token() {
    let tokens = "[secrets]\nA = { env = 'TOOLCRIB_TEST_A' }\nB = { env = 'TOOLCRIB_TEST_B' }\n\
                  [[serve.token]]\nsecret = 'secret:A'\nprincipal = 'intern'\n\
                  [[serve.token]]\nsecret = 'secret:B'\nprincipal = 'ana'\n";
    let project = desk(tokens);
    let errors = project.path().join("errors.txt");
    let mut command = project.command(&["serve"]);
    command.env("TOOLCRIB_TEST_A", "a-token-of-a-test-0001");
    let http = Http::start(command.env("TOOLCRIB_TEST_B", "a-token-of-a-test-0002"), &errors);
    wait_for(|| fs::read_to_string(&errors).unwrap().contains("withheld for ana"));
    assert!(fs::read_to_string(&errors).unwrap().contains("withheld for intern"));
    assert_eq!(http.end(), Some(0));
}

#[test]
fn a_token_says_under_which_personality_it_is_served() {
    let tokens = "[[personality]]\nname = 'clerk'\ntoolset = ['list_charges']\n\
                  [secrets]\nA = { env = 'TOOLCRIB_TEST_A' }\nB = { env = 'TOOLCRIB_TEST_B' }\n\
                  [[serve.token]]\nsecret = 'secret:A'\npersonality = 'clerk'\n\
                  [[serve.token]]\nsecret = 'secret:B'\nprincipal = 'bob'\n";
    let project = desk(tokens);
    let errors = project.path().join("errors.txt");
    let (clerk, anybody) = ("a-token-of-a-test-0001", "a-token-of-a-test-0002");
    let mut command = project.command(&["serve"]);
    command.env("TOOLCRIB_TEST_A", clerk).env("TOOLCRIB_TEST_B", anybody);
    let http = Http::start(&mut command, &errors);
    let offered = |token| http.list(Some(token)).1;
    assert!(offered(clerk).contains("list_charges"));
    assert!(!offered(clerk).contains("list_refunds"));
    assert!(offered(anybody).contains("list_refunds"));
    wait_for(|| fs::read_to_string(&errors).unwrap().contains("withheld as clerk"));
    assert_eq!(http.end(), Some(0));

    let mut both = project.command(&["serve", "--http", "0", "--personality", "clerk"]);
    both.env("TOOLCRIB_TEST_A", clerk).env("TOOLCRIB_TEST_B", anybody);
    let both = both.output().unwrap();
    assert_eq!(both.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&both.stderr).contains("`--personality`"));
}

#[test]
fn the_address_that_is_printed_is_served_whatever_hosts_are_allowed() {
    let project = desk("");
    let errors = project.path().join("errors.txt");
    let token = |project: &Project| {
        fs::read_to_string(project.state().join("serve-token")).unwrap().trim().to_owned()
    };
    let mut named = project.command(&["serve", "--allow-host", "tools.example"]);
    let http = Http::start(&mut named, &errors);
    let (status, answer) = http.list(Some(&token(&project)));
    assert_eq!(status, "200", "{answer}");
    assert_eq!(http.end(), Some(0));

    let mut elsewhere = project.command(&["serve"]);
    let http = Http::start_at(&mut elsewhere, "127.0.0.2:0", &errors);
    assert_eq!(http.list(Some(&token(&project))).0, "200");
    assert_eq!(http.end(), Some(0));
}

#[test]
fn the_token_is_in_its_file_before_a_connection_is_accepted() {
    let project = desk("");
    let token = project.state().join("serve-token");
    for _ in 0..5 {
        let _ = fs::remove_file(&token);
        // A client of 127.0.0.1 may get the same port as its own, and would connect to itself.
        let listener = TcpListener::bind(("127.0.0.2", 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let mut command = project.command(&["serve", "--quiet", "--http", &address]);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        // Without a pause, which would hide the moment between.
        while TcpStream::connect(&address).is_err() {
            assert_eq!(child.try_wait().unwrap(), None);
        }
        let is_there = token.exists();
        terminate(&child);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(is_there);
    }
}

#[test]
fn a_refusal_is_told_as_one_in_the_log_that_people_read() {
    let project = desk("");
    let errors = project.path().join("errors.txt");
    let http = Http::start(&mut project.command(&["serve", "--access-log", "-"]), &errors);
    assert_eq!(http.list(None).0, "401");
    wait_for(|| fs::read_to_string(&errors).unwrap().contains("http 401"));
    let said = fs::read_to_string(&errors).unwrap();
    let line = said.lines().find(|line| line.contains("http 401")).unwrap();
    assert!(line.contains(" failed ") && !line.contains(" ok "), "{line}");
    assert_eq!(http.end(), Some(0));
}

#[test]
fn the_access_log_never_takes_a_file_of_the_project() {
    let project = desk("");
    let file = project.path().join("toolcrib.toml");
    let before = fs::read_to_string(&file).unwrap();
    let refused = project.toolcrib(&["serve", "--access-log", file.to_str().unwrap()]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--access-log"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

#[test]
fn a_token_file_that_is_too_short_is_named() {
    let project = desk("");
    fs::create_dir_all(project.state()).unwrap();
    let file = project.state().join("serve-token");
    fs::write(&file, "short").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let refused = project.toolcrib(&["serve", "--http", "0"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("serve-token"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("[[serve.token]]"), "{}", refused.stderr);
}

/// A server that answers no call.
const SLOW: &str = r#"
import json, sys
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if "id" not in message:
        continue
    if method == "initialize":
        say({"id": message["id"], "result": {"protocolVersion": "2025-06-18",
             "capabilities": {"tools": {}}, "serverInfo": {"name": "slow", "version": "1"}}})
    elif method == "tools/list":
        tool = {"name": "silent", "inputSchema": {"type": "object"}}
        say({"id": message["id"], "result": {"tools": [tool]}})
    elif method != "tools/call":
        say({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})
"#;

#[test]
fn calls_of_imported_servers_end_in_time() {
    let declared = |more: Value| {
        let mut server = json!({ "command": "python3", "args": ["slow.py"] });
        server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "mcpServers": { "slow": server } }).to_string()
    };
    let plain = declared(json!({}));
    let of_file = declared(json!({ "timeout": 1_500 }));
    let folder = Project::of(&[("slow.py", SLOW), ("plain.json", &plain), (".mcp.json", &of_file)]);
    for (file, option, limit) in [("plain.json", "1s", "1s"), (".mcp.json", "9s", "1.5s")] {
        let mut command = toolcrib();
        command.args(["serve", "--no-project", "--import", file, "--timeout", option]);
        let mut client = Piped::start(command.current_dir(folder.path()));
        let call = json!({ "name": "mcp__slow__silent", "arguments": {} });
        let answer = client.ask(&message(2, "tools/call", &call)).to_string();
        assert!(answer.contains(&format!("did not finish within {limit}")), "{answer}");
        client.end();
    }
}

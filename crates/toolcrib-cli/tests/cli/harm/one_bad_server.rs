//! One server that fails or hangs, and what it did to the others.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    gateway::{Http, Piped, message},
    support::{Outcome, Project, toolcrib, wait_for},
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/stateful_server.py");

/// Far less than the bad server may take to start, and far more than a good one needs.
const PROMPT: Duration = Duration::from_secs(300);

/// A project of a good server, and one that hangs, crashes, or is not there.
fn project(bad: &str) -> Project {
    let file = format!(
        "[mcp.bad]\nstart_timeout = '1h'\n{bad}\n\
         [mcp.good]\ncommand = 'python3'\nargs = ['{SCRIPT}', 'good']\nenv = {{ LOG = 'log' }}\n"
    );
    Project::of(&[("toolcrib.toml", &file)])
}

fn program(env: &str) -> String {
    format!("command = 'python3'\nargs = ['{SCRIPT}', 'bad']\nenv = {{ LOG = 'log', {env} }}")
}

/// The same two servers in a file that is imported.
fn import(env: &Value) -> Project {
    let server = |name: &str, env: &Value| json!({ "command": "python3", "args": [SCRIPT, name], "env": env });
    let file =
        json!({ "mcpServers": { "bad": server("bad", env), "good": server("good", &json!({})) } });
    Project::of(&[("mcp.json", &file.to_string())])
}

fn imported(folder: &Project, args: &[&str]) -> Command {
    let mut command = toolcrib();
    command.args(args).args(["--no-project", "--import", "mcp.json"]).current_dir(folder.path());
    command.env("XDG_STATE_HOME", folder.path().join("states"));
    command
}

fn recall() -> Value {
    json!({ "name": "mcp__good__recall", "arguments": {} })
}

/// A list request, and a call before the list is answered.
fn serves_a_call_during_a_list(mut client: Piped) {
    let began = Instant::now();
    client.send(&message(5, "tools/list", &json!({})));
    client.send(&message(6, "tools/call", &recall()));
    let mut answers = [client.next(), client.next()];
    assert!(began.elapsed() < PROMPT, "{:?}", began.elapsed());
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let listed = answers[0]["result"]["tools"].to_string();
    assert!(listed.contains("mcp__good__recall"), "{listed}");
    let notices = answers[0]["result"]["_meta"].to_string();
    assert!(notices.contains("mcp__bad__*"), "{notices}");
    assert!(answers[1]["result"]["content"].to_string().contains("memory="), "{}", answers[1]);
    client.end();
}

#[test]
fn a_server_that_hung_at_its_start_held_up_the_first_call_of_another() {
    let in_project = project(&program("HANG = '1'"));
    serves_a_call_during_a_list(Piped::start(&mut in_project.command(&["serve", "--quiet"])));
    let alone = import(&json!({ "HANG": "1" }));
    serves_a_call_during_a_list(Piped::start(&mut imported(&alone, &["serve", "--quiet"])));

    let http =
        Http::start(&mut in_project.command(&["serve"]), &in_project.path().join("errors.txt"));
    let token = fs::read_to_string(in_project.state().join("serve-token")).unwrap();
    let began = Instant::now();
    let session = http.begin(token.trim());
    for session in [Some(&*session), None] {
        let (status, answer) = http.post(Some(token.trim()), "tools/call", &recall(), session);
        assert!(status == "200" && answer.contains("memory="), "{answer}");
    }
    assert!(began.elapsed() < PROMPT, "{:?}", began.elapsed());
    http.end();
}

/// Only the start of the client waits. A nap that takes as long as ten waits tells whether the lists wait
/// too: it is over before twenty of them.
#[test]
fn a_program_that_hung_held_up_each_list_of_its_client() {
    let file = format!(
        "policy_default = 'allow'\n[mcp.bad]\nstart_timeout = '1h'\n{}\n\
         [[tool]]\nkind = 'command'\nname = 'nap'\ndescription = 'Sleeps.'\nread_only = true\n\
         program = 'sleep'\nargs = ['50']\ntimeout = '10m'\n",
        program("HANG = '1'")
    );
    let project = Project::of(&[("toolcrib.toml", &file)]);
    let mut client = Piped::start(&mut project.command(&["serve", "--quiet"]));
    client.send(&message(5, "tools/call", &json!({ "name": "nap", "arguments": {} })));
    let lists = ["prompts/list", "tools/list", "resources/list", "resources/templates/list"];
    for (id, method) in (10..30).zip(lists.iter().cycle()) {
        client.send(&message(id, method, &json!({})));
        let answer = client.next();
        assert_eq!(answer["id"], id, "the nap was over before this {method}: {answer}");
        assert!(answer["result"].is_object(), "{answer}");
    }
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } });
    client.send(&cancel.to_string());
    client.end();
}

#[test]
fn one_call_on_the_command_line_waited_for_all_servers() {
    for bad in [program("HANG = '1'"), "command = 'no-such-program-e'".into()] {
        for word in ["", "on_failure = 'fail'", "on_failure = 'omit'"] {
            let project = project(&format!("{bad}\n{word}"));
            let began = Instant::now();
            let (code, called) = project.json(&["call", "mcp__good__recall"]);
            assert_eq!((code, &called["value"]), (Some(0), &json!("memory=")), "{called}");
            let (code, called) = project.json(&["mcp", "call", "good", "recall"]);
            assert_eq!((code, &called["value"]), (Some(0), &json!("memory=")), "{called}");
            assert!(began.elapsed() < PROMPT, "{:?}", began.elapsed());
            let log = fs::read_to_string(project.path().join("log")).unwrap();
            assert!(!log.contains("bad start"), "nobody needs it, so it is not started: {log}");
        }
    }
    let alone = import(&json!({ "HANG": "1", "LOG": "log" }));
    let called: Outcome =
        imported(&alone, &["mcp", "call", "good", "recall"]).output().unwrap().into();
    assert_eq!((called.code, &*called.stdout), (Some(0), "memory=\n"), "{}", called.stderr);
    assert!(!alone.path().join("log").exists(), "the other server is not started");
}

#[test]
fn a_server_that_was_down_took_a_project_down_with_it() {
    let down = project("url = 'http://127.0.0.1:9/mcp'");
    let menu = down.toolcrib(&["menu"]);
    assert_eq!(menu.code, Some(0), "{}", menu.stderr);
    assert!(menu.stdout.contains("mcp__good__recall"), "{}", menu.stdout);
    assert!(menu.stderr.contains("left out"), "{}", menu.stderr);
    let needed = project("url = 'http://127.0.0.1:9/mcp'\non_failure = 'fail'");
    assert_eq!(needed.toolcrib(&["menu"]).code, Some(1));

    let file = "[hub.shop]\nurl = 'http://127.0.0.1:9/tools'\nkey = []\nttl = '60s'\n\
                allow_addresses = ['127.0.0.1']\n[hub.shop.call]\nurl = 'http://127.0.0.1:9/{tool}'\n";
    let hub = Project::of(&[("toolcrib.toml", file)]);
    let menu = hub.toolcrib(&["menu"]);
    assert_eq!(menu.code, Some(0), "{}", menu.stderr);
}

#[test]
fn health_was_said_to_be_well_when_nothing_could_be_offered() {
    let errors = |project: &Project| project.path().join("errors.txt");
    let settled = |http: &Http| {
        let mut ready = (String::new(), String::new());
        wait_for(|| {
            ready = http.get("/readyz");
            ready.1.contains("\"starting\":0") && !ready.1.contains("\"failing\":0")
        });
        ready
    };
    let one = project(&program("DOWN = 'toolcrib.toml'"));
    let http = Http::start(&mut one.command(&["serve"]), &errors(&one));
    let (status, answer) = settled(&http);
    assert!(status == "503" && answer.contains("degraded"), "{answer}");
    assert!(answer.contains(r#""missing":{"bad":"failing"}"#), "{answer}");
    assert_eq!(http.get("/healthz").0, "200");
    http.end();
    let file = std::fs::read_to_string(one.path().join("toolcrib.toml")).unwrap();
    one.write("toolcrib.toml", &format!("{file}\n[serve]\nready = 'any'\n"));
    let http = Http::start(&mut one.command(&["serve"]), &errors(&one));
    let (status, answer) = settled(&http);
    assert!(status == "200" && answer.contains("degraded"), "{answer}");
    http.end();

    let all = format!("[mcp.bad]\n{}\n", program("DOWN = 'toolcrib.toml'"));
    let all = Project::of(&[("toolcrib.toml", &all)]);
    let http = Http::start(&mut all.command(&["serve"]), &errors(&all));
    let (status, answer) = settled(&http);
    assert!(status == "503" && answer.contains("unavailable"), "{answer}");
    assert_eq!(http.get("/healthz").0, "200", "the process lives");
    http.end();
}

#[test]
fn during_an_outage_the_model_read_that_there_is_no_such_tool() {
    let deny = "[[policy]]\neffect = 'deny'\ntool = 'mcp__bad__secret'\n";
    for word in ["", "on_failure = 'omit'"] {
        let bad = program("DOWN = 'down'");
        let project = project(&format!("{bad}\n{word}"));
        let file = fs::read_to_string(project.path().join("toolcrib.toml")).unwrap();
        project.write("toolcrib.toml", &format!("policy_default = 'allow'\n{file}{deny}"));
        let mut client = Piped::start(&mut project.command(&["serve", "--quiet"]));
        assert!(client.tools().contains(&"mcp__bad__recall".to_owned()));
        project.write("down", "");
        let call = |client: &mut Piped, tool: &str| {
            let params = json!({ "name": format!("mcp__bad__{tool}"), "arguments": {} });
            client.ask(&message(8, "tools/call", &params)).to_string()
        };
        call(&mut client, "die");
        wait_for(|| {
            let said = call(&mut client, "recall");
            assert!(!said.contains("unknown tool"), "{said}");
            said.contains("cannot be used at the moment") && said.contains("again")
        });
        // Hidden tools are reported as unknown.
        for hidden in ["secret", "nothing"] {
            let said = call(&mut client, hidden);
            assert!(said.contains("unknown tool"), "{said}");
        }
        fs::remove_file(project.path().join("down")).unwrap();
        wait_for(|| call(&mut client, "recall").contains("memory="));
        client.end();
    }
}

#[test]
fn a_server_that_was_never_there_was_said_to_have_no_such_tool() {
    let deny = "[[policy]]\neffect = 'deny'\ntool = 'mcp__bad__secret'\n";
    let project = project(&program("DOWN = 'toolcrib.toml'"));
    let file = fs::read_to_string(project.path().join("toolcrib.toml")).unwrap();
    project.write("toolcrib.toml", &format!("policy_default = 'allow'\n{file}{deny}"));
    let mut client = Piped::start(&mut project.command(&["serve", "--quiet"]));
    for (tool, is_away) in [("bad__recall", true), ("bad__secret", true), ("worse__recall", false)]
    {
        let params = json!({ "name": format!("mcp__{tool}"), "arguments": {} });
        let said = client.ask(&message(8, "tools/call", &params)).to_string();
        assert_eq!(said.contains("cannot be used at the moment"), is_away, "{said}");
        assert_eq!(said.contains("unknown tool"), !is_away, "{said}");
    }
    client.end();
}

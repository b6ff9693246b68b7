//! `toolcrib serve` in front of a server of others, as clients of others see it: the official SDKs
//! for TypeScript and Python, and the Inspector. `cargo xtask peers` installs all of them.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Lines, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib_skip::skip;

use crate::support::{Project, wait_for};

const VARIABLE: &str = "TOOLCRIB_PEERS";
const TOKEN: &str = "a-token-of-a-test-0002";

const ECHO: &str = "mcp__all__echo";
const SUM: &str = "mcp__all__get-sum";
const LONG: &str = "mcp__all__trigger-long-running-operation";
const WEATHER: &str = "mcp__all__get-structured-content";

/// The menu of a reader, without the tool that is declared as writing.
const MENU: [&str; 4] = [ECHO, WEATHER, SUM, LONG];

/// The folder that `cargo xtask peers` installs into.
pub(crate) struct Peers(pub(crate) PathBuf);

impl Peers {
    /// `None` where none is named: the test is skipped.
    pub(crate) fn find() -> Option<Self> {
        let Some(folder) = env::var_os(VARIABLE) else {
            skip("no MCP peers are installed; run `cargo xtask peers`");
            return None;
        };
        let folder = PathBuf::from(folder);
        assert!(folder.join("installed.txt").is_file(), "run `cargo xtask peers`");
        Some(Self(folder))
    }

    fn path(&self, of: &str) -> String {
        self.0.join(of).to_str().unwrap().to_owned()
    }

    /// A server with five tools, four of them for readers, and one skill with one of them.
    fn project(&self) -> Project {
        let (node, script) =
            (self.path("node/bin/node"), self.path("node_modules/.bin/mcp-server-everything"));
        let file = format!(
            r#"name = "peers"
policy_default = "allow"

[mcp.all]
command = "{node}"
args = ["{script}"]
trusted = true
start_timeout = "10m"
list_timeout = "10m"
include = ["echo", "get-s*", "trigger-*", "toggle-simulated-logging"]

[secrets]
READER = {{ env = "TOOLCRIB_TEST_READER" }}

[[serve.token]]
secret = "secret:READER"
principal = "rita"

[[role]]
name = "reader"
principals = ["rita"]

[[policy]]
effect = "deny"
role = "reader"
annotation = {{ read_only = false }}
"#
        );
        let skill = format!(
            "---\nname: talking\ndescription: Talks.\nmetadata:\n  toolcrib-tools: {ECHO}\n---\nTalk.\n"
        );
        Project::of(&[("toolcrib.toml", &file), ("skills/talking/SKILL.md", &skill)])
    }

    /// `npx` and `uvx` that start the programs installed here, whatever version is requested.
    fn launchers(&self) -> TempDir {
        let folder = TempDir::new().unwrap();
        let node = format!(
            "exec '{}' '{}/mcp-'",
            self.path("node/bin/node"),
            self.path("node_modules/.bin")
        );
        let npx =
            format!("#!/bin/sh\nshift\nname=${{1%@*}}; shift\n{node}\"${{name##*/}}\" \"$@\"\n");
        let uvx = format!(
            "#!/bin/sh\nname=${{1%@*}}; shift\nexec '{}/'\"$name\" \"$@\"\n",
            self.path("venv/bin")
        );
        for (name, script) in [("npx", npx), ("uvx", uvx)] {
            let path = folder.path().join(name);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    /// A client that does steps, and what it saw of them.
    fn drive(&self, sdk: Sdk, job: &Value) -> Value {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbed/peers");
        let mut command = match sdk {
            Sdk::TypeScript => {
                let mut node = Command::new(self.path("node/bin/node"));
                node.arg(scripts.join("client.mjs"));
                node
            }
            Sdk::Python => {
                let mut python = Command::new(self.path("venv/bin/python"));
                // Isolated, and without bytecode left beside the sources.
                python.arg("-IB").arg(scripts.join("client.py"));
                python
            }
        };
        let output = command.arg(job.to_string()).env(VARIABLE, &self.0).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sdk:?}: {said}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{sdk:?}: {said}"))
    }

    /// The output of the Inspector.
    fn inspect(&self, project: &Project, what: &[&str]) -> (bool, String) {
        let mut command = Command::new(self.path("node/bin/node"));
        command.args([&self.path("node_modules/.bin/mcp-inspector"), "--cli"]);
        command.args(serve(project, &[])).args(what);
        // It looks up programs, and writes files.
        let path = format!("{}:{}", self.path("node/bin"), env::var("PATH").unwrap_or_default());
        let output = command.env("PATH", path).env("HOME", project.path()).output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
    }
}

#[derive(Debug, Clone, Copy)]
enum Sdk {
    TypeScript,
    Python,
}

const SDKS: [Sdk; 2] = [Sdk::TypeScript, Sdk::Python];

/// The command line of a gateway for a reader.
fn serve(project: &Project, more: &[&str]) -> Vec<String> {
    let command = project.command(&[&["serve", "--quiet", "--as", "rita"], more].concat());
    let args = command.get_args().map(|arg| arg.to_str().unwrap().to_owned());
    std::iter::once(env!("CARGO_BIN_EXE_toolcrib").to_owned()).chain(args).collect()
}

/// Looks, calls what goes well, what a reader is not offered and what cannot be valid, follows a long call, and
/// takes one back.
fn steps() -> Vec<Value> {
    vec![
        // On a busy machine the server may start slowly, and is not in the first list.
        json!({"do": "list", "until": MENU}),
        json!({"do": "call", "name": ECHO, "arguments": {"message": "hello"}}),
        json!({"do": "call", "name": "mcp__all__toggle-simulated-logging", "arguments": {}}),
        json!({"do": "call", "name": SUM, "arguments": {"a": "one"}}),
        json!({"do": "call", "name": WEATHER, "arguments": {"location": "Chicago"}}),
        json!({"do": "call", "name": LONG, "arguments": {"duration": 0.8, "steps": 4}}),
        json!({"do": "cancel", "name": LONG, "arguments": {"duration": 30, "steps": 300}}),
        json!({"do": "call", "name": ECHO, "arguments": {"message": "still there"}}),
    ]
}

/// The results of [`steps`].
fn check(seen: &[Value], more: &[&str]) {
    let [menu, echo, hidden, sum, weather, long, cancelled, after, ..] = seen else {
        panic!("{seen:?}");
    };
    assert_eq!(menu["tools"], json!([&MENU, more].concat()));
    let fenced = echo["text"].as_str().unwrap();
    assert!(fenced.starts_with("<untrusted ") && fenced.contains("\nEcho: hello\n"), "{fenced}");
    assert_eq!((&echo["is_error"], &echo["code"]), (&json!(false), &Value::Null));
    assert_eq!(hidden["error"], json!({"code": -32602, "data": {"code": "not_available"}}));
    assert_eq!((&sum["is_error"], &sum["code"]), (&json!(true), &json!("input_invalid")));
    assert_eq!(weather["structured"]["conditions"], json!("Light rain / drizzle"));
    assert!(long["text"].as_str().unwrap().contains("completed"), "{long}");
    // As JavaScript and as Python write numbers.
    let counts: Vec<f64> =
        long["progress"].as_array().unwrap().iter().map(|of| of[0].as_f64().unwrap()).collect();
    // On a busy machine the gateway sends only the newest of two counts. The TypeScript SDK looks at a
    // notification after the answer that came in the same read, and then knows of no call that it
    // belongs to.
    let is_growing = counts.is_sorted_by(|before, after| before < after);
    let is_of_server = counts.iter().all(|count| [1.0, 2.0, 3.0, 4.0].contains(count));
    assert!(counts.len() >= 2 && is_growing && is_of_server, "as the server counts: {counts:?}");
    assert_eq!(cancelled, &json!({"cancelled": true}));
    assert!(after["text"].as_str().unwrap().contains("Echo: still there"), "{after}");
}

/// A session: a skill is read, the client is notified, and the menu is the skill's.
fn check_session(seen: &[Value]) {
    check(seen, &["read_skill"]);
    let [.., read, changed, menu] = seen else { panic!("{seen:?}") };
    assert!(read["text"].as_str().unwrap().contains("Talk."), "{read}");
    assert_eq!(changed, &json!({"changed": true}));
    assert_eq!(menu["tools"], json!([ECHO, "read_skill"]));
}

fn session_steps() -> Vec<Value> {
    let mut steps = steps();
    steps.push(json!({"do": "call", "name": "read_skill", "arguments": {"id": "talking"}}));
    steps.push(json!({"do": "change"}));
    steps.push(json!({"do": "list"}));
    steps
}

/// The call that was taken back ended; all that was begun has.
fn check_events(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(of("tool.start"), of("tool.end"));
    let ends = |event: &&Value| event["type"] == "tool.end" && event["tool"] == LONG;
    let codes: Vec<_> = events.iter().filter(ends).map(|event| event["code"].clone()).collect();
    assert_eq!(codes, [Value::Null, json!("cancelled")]);
    let told = |event: &&Value| event["type"] == "tool.progress" && event["percent"] == 100;
    assert_eq!(events.iter().filter(told).count(), 1);
}

#[test]
fn sdks_use_the_gateway_on_stdio() {
    let Some(peers) = Peers::find() else { return };
    for sdk in SDKS {
        let project = peers.project();
        let events = project.path().join("events.jsonl");
        let command = serve(&project, &["--events", events.to_str().unwrap()]);
        let job = json!({"mode": "legacy", "command": command, "steps": session_steps()});
        let seen = peers.drive(sdk, &job);
        assert_eq!(seen["protocol"], json!("2025-11-25"), "{sdk:?}");
        check_session(seen["steps"].as_array().unwrap());
        check_events(&events);

        let job = json!({"mode": "2026-07-28", "command": command, "steps": steps()});
        let seen = peers.drive(sdk, &job);
        assert_eq!(seen["protocol"], json!("2026-07-28"), "{sdk:?}");
        check(seen["steps"].as_array().unwrap(), &[]);
        check_events(&events);
    }
}

#[test]
fn sdks_use_the_gateway_over_http() {
    let Some(peers) = Peers::find() else { return };
    let project = peers.project();
    let gateway = Http::start(&project);
    for sdk in SDKS {
        let job = |mode: &str, steps: Vec<Value>, token: &str| json!({"mode": mode, "url": gateway.url, "token": token, "steps": steps});
        let seen = peers.drive(sdk, &job("legacy", session_steps(), TOKEN));
        assert_eq!(seen["protocol"], json!("2025-11-25"), "{sdk:?}");
        check_session(seen["steps"].as_array().unwrap());

        let seen = peers.drive(sdk, &job("2026-07-28", steps(), TOKEN));
        assert_eq!(seen["protocol"], json!("2026-07-28"), "{sdk:?}");
        check(seen["steps"].as_array().unwrap(), &[]);
    }
}

#[test]
fn the_inspector_lists_and_calls() {
    let Some(peers) = Peers::find() else { return };
    let project = peers.project();
    let (ok, listed) = peers.inspect(&project, &["--method", "tools/list"]);
    assert!(ok && MENU.iter().all(|name| listed.contains(name)), "{listed}");
    assert!(!listed.contains("toggle-simulated-logging"), "{listed}");

    let call = ["--method", "tools/call", "--tool-name", ECHO, "--tool-arg", "message=hello"];
    let (ok, answer) = peers.inspect(&project, &call);
    assert!(ok && answer.contains("Echo: hello") && answer.contains("<untrusted "), "{answer}");
}

/// `examples/gateway`, with three servers of others, as a plain client sees it: for a reader, and
/// under the skill.
#[test]
fn the_gateway_example_is_three_servers_behind_one_door() {
    let Some(peers) = Peers::find() else { return };
    let example = Project::copy_of("gateway");
    // On a busy machine a server may start slowly.
    let file = fs::read_to_string(example.path().join("toolcrib.toml")).unwrap();
    let patient = "trusted = true\nstart_timeout = '10m'\nlist_timeout = '10m'";
    example.write("toolcrib.toml", &file.replace("trusted = true", patient));
    let launchers = peers.launchers();
    let path = format!("PATH={}:{}", launchers.path().display(), env::var("PATH").unwrap());
    let repository = format!("REPOSITORY={}/../..", env!("CARGO_MANIFEST_DIR"));
    // A list leaves out the servers that have not started within five seconds.
    let list = |until: [&str; 3]| json!({"do": "list", "until": until});
    let client = |more: &[&str], steps: Vec<Value>| {
        let toolcrib = example.command(&[&["serve", "--quiet"], more].concat());
        let mut command = vec![
            "env".to_owned(),
            path.clone(),
            repository.clone(),
            env!("CARGO_BIN_EXE_toolcrib").to_owned(),
        ];
        command.extend(toolcrib.get_args().map(|arg| arg.to_str().unwrap().to_owned()));
        let job = json!({"mode": "legacy", "command": command, "steps": steps});
        peers.drive(Sdk::Python, &job)["steps"].as_array().unwrap().to_vec()
    };
    let file = json!({"path": "releases/0.2.md", "content": "# 0.2"});
    let write = json!({"do": "call", "name": "mcp__files__write_file", "arguments": file});

    let menu = list(["mcp__files__read_file", "mcp__git__git_log", "mcp__time__convert_time"]);
    let seen = client(&["--as", "reader"], vec![menu, write.clone()]);
    let names: Vec<_> =
        seen[0]["tools"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    insta::assert_snapshot!(names.join("\n"), @r#"
    mcp__files__directory_tree
    mcp__files__get_file_info
    mcp__files__list_allowed_directories
    mcp__files__list_directory
    mcp__files__list_directory_with_sizes
    mcp__files__read_file
    mcp__files__read_media_file
    mcp__files__read_multiple_files
    mcp__files__read_text_file
    mcp__files__search_files
    mcp__git__git_branch
    mcp__git__git_diff
    mcp__git__git_diff_staged
    mcp__git__git_diff_unstaged
    mcp__git__git_log
    mcp__git__git_show
    mcp__git__git_status
    mcp__time__convert_time
    mcp__time__get_current_time
    read_skill
    "#);
    assert_eq!(seen[1]["error"]["data"]["code"], "not_available");

    let log = json!({"do": "call", "name": "mcp__git__git_log", "arguments": {"repo_path": format!("{}/../..", env!("CARGO_MANIFEST_DIR")), "max_count": 1}});
    let menu = list(["mcp__files__write_file", "mcp__git__git_log", "mcp__git__git_show"]);
    let seen = client(&["--skill", "release-notes"], vec![menu, log, write]);
    assert_eq!(
        seen[0]["tools"],
        json!([
            "mcp__files__list_directory",
            "mcp__files__read_text_file",
            "mcp__files__write_file",
            "mcp__git__git_log",
            "mcp__git__git_show",
            "read_skill"
        ])
    );
    assert!(seen[1]["text"].as_str().unwrap().starts_with("<untrusted "), "{}", seen[1]);
    assert_eq!(seen[2]["is_error"], false, "{}", seen[2]);
    let written = fs::read_to_string(example.path().join("notes/releases/0.2.md")).unwrap();
    assert_eq!(written, "# 0.2");
}

/// A gateway over HTTP, which ends with the value.
struct Http {
    child: Child,
    url: String,
}

impl Http {
    fn start(project: &Project) -> Self {
        let said = project.path().join("said.txt");
        let mut command = project.command(&["serve", "--http", "0"]);
        command.env("TOOLCRIB_TEST_READER", TOKEN).stdout(Stdio::null());
        let child = command.stderr(fs::File::create(&said).unwrap()).spawn().unwrap();
        let mut url = None;
        wait_for(|| {
            let text = fs::read_to_string(&said).unwrap();
            let find =
                |line: &str| Some(line.split_once("http://")?.1.split_once("/mcp")?.0.to_owned());
            url = text.lines().find_map(find);
            url.is_some()
        });
        Self { child, url: format!("http://{}/mcp", url.unwrap()) }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        // Its child processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves one page on a thread, until the process ends.
fn page() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let body = "<title>Shop</title><h1>Orders</h1>\
            <button onclick=\"document.title = 'Refunded'\">Refund</button>";
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = std::io::Read::read(&mut stream, &mut request);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    port
}

#[test]
fn an_agent_with_a_browser_reads_a_page_in_parts_and_clicks() {
    let Some(peers) = Peers::find() else { return };
    let dir = TempDir::new().unwrap();
    let begun = crate::support::toolcrib()
        .args(["init", "web", "--with", "browser"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(begun.status.success(), "{}", String::from_utf8_lossy(&begun.stderr));
    let file = dir.path().join("web/toolcrib.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("/chromium"), "Debian's Chromium: {text}");
    // The package that `npx` would fetch.
    let (node, server) =
        (peers.path("node/bin/node"), peers.path("node_modules/@playwright/mcp/cli.js"));
    let text = text.replace("command = \"npx\"", &format!("command = {node:?}"));
    let text = text.replace("\"--yes\", \"@playwright/mcp@0.0.83\"", &format!("{server:?}"));
    let text = text.replace("[agent]", "[agent]\nmodel = \"script:script.toml\"");
    fs::write(&file, text).unwrap();
    let script = format!(
        r#"
[[rule]]
step = 1
calls = [{{ tool = "mcp__browser__browser_navigate", args = {{ url = "http://127.0.0.1:{}/" }} }}]
[[rule]]
step = 2
calls = [{{ tool = "search_files", args = {{ pattern = "button .Refund" }} }}]
[[rule]]
step = 3
when = [{{ result = "search_files", contains = "[ref=" }}]
calls = [{{ tool = "mcp__browser__browser_click", args = {{ element = "Refund", target = "button" }} }}]
[[rule]]
step = 4
calls = [{{ tool = "mcp__browser__browser_evaluate", args = {{ function = "() => 1" }}, even_if_not_offered = true }}]
[[rule]]
text = "Done."
"#,
        page()
    );
    fs::write(dir.path().join("web/script.toml"), script).unwrap();
    let ran = crate::support::toolcrib()
        .args(["run", "-p", "web", "--json", "Refund it."])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let run: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let calls = run["tool_calls"].as_array().unwrap();
    let codes: Vec<_> = calls.iter().map(|call| call["code"].as_str().unwrap_or("ok")).collect();
    assert_eq!(codes, ["ok", "ok", "ok", "not_available"], "{run:#}");
    let navigated = calls[0]["value"].as_str().unwrap();
    assert!(navigated.contains("Page Title: Shop"), "{run:#}");
    // The path that the model was given is one that it can read.
    let start = navigated.find("pages/page-").unwrap_or_else(|| panic!("{run:#}"));
    let end = navigated[start..].find(".yml").unwrap() + start + ".yml".len();
    let is_start = navigated[..start].ends_with(['(', ' ', '`', '"', '\n']);
    assert!(is_start, "{run:#}");
    let read = crate::support::toolcrib()
        .args(["call", "-p", "web", "read_file", &format!("path={}", &navigated[start..end])])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    assert!(calls[2]["value"].as_str().unwrap().contains("Page Title: Refunded"), "{run:#}");
}

#[test]
fn a_resource_of_a_server_is_attached_unless_a_rule_denies_it() {
    let Some(peers) = Peers::find() else { return };
    let (node, script) =
        (peers.path("node/bin/node"), peers.path("node_modules/.bin/mcp-server-everything"));
    let text = format!(
        "policy_default = \"allow\"\n[agent]\nmodel = \"script:script.toml\"\n\
         [mcp.all]\ncommand = {node:?}\nargs = [{script:?}]\n\
         [[policy]]\neffect = \"deny\"\ntool = \"mcp__all__resources\"\nprincipal = \"intern\"\n"
    );
    let rules = "[[rule]]\nuser = 'Attached file `(?P<name>[^`]+)`'\n\
                 text = \"{{ name }}\"\n[[rule]]\ntext = \"Nothing.\"\n";
    let project = Project::of(&[("toolcrib.toml", &text), ("script.toml", rules)]);
    let resource = "mcp:all:demo://resource/dynamic/text/1";
    let (code, run) = project.json(&["run", "--attach", resource, "Read text."]);
    assert_eq!((code, run["answer"].as_str()), (Some(0), Some("1")), "{run:#}");
    let denied = project.toolcrib(&["run", "--as", "intern", "--attach", resource, "Read text."]);
    assert_eq!(denied.code, Some(1), "{}", denied.stderr);
    let unknown = project.toolcrib(&["run", "--attach", "mcp:al:demo://x", "Read text."]);
    assert!(unknown.stderr.contains("did you mean `all`?"), "{}", unknown.stderr);
}

/// A client of 2025-11-25 with roots and forms, in JSON.
struct Client {
    gateway: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    root: PathBuf,
    last: u64,
}

impl Client {
    fn of(project: &Project, root: PathBuf) -> Self {
        let mut command = project.command(&["serve", "--quiet"]);
        let mut gateway = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = gateway.stdin.take().unwrap();
        let lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
        let mut client = Self { gateway, input, lines, root, last: 0 };
        let can = json!({ "roots": { "listChanged": true }, "elicitation": {} });
        let info = json!({ "name": "raw", "version": "1" });
        client.ask(
            "initialize",
            &json!({ "protocolVersion": "2025-11-25", "capabilities": can, "clientInfo": info }),
        );
        client.send(json!({ "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        self.input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// The result of a request. Requests of servers are answered meanwhile.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        self.send(json!({ "id": self.last, "method": method, "params": params }));
        loop {
            let line = self.lines.next().expect("a line").unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            let result = match message["method"].as_str() {
                None if message["id"] == self.last => return message["result"].clone(),
                Some("roots/list") => {
                    json!({ "roots": [{ "uri": format!("file://{}", self.root.display()) }] })
                }
                Some("elicitation/create") => {
                    json!({ "action": "accept", "content": { "name": "Ana" } })
                }
                _ => continue,
            };
            self.send(json!({ "id": message["id"], "result": result }));
        }
    }

    /// The text of a call.
    fn call(&mut self, tool: &str) -> String {
        let result = self.ask("tools/call", &json!({ "name": tool, "arguments": {} }));
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

/// It asks for the roots when it is initialized and when they have changed, in no call.
#[test]
fn the_filesystem_server_follows_the_roots_of_a_client() {
    let Some(peers) = Peers::find() else { return };
    let (node, script) =
        (peers.path("node/bin/node"), peers.path("node_modules/.bin/mcp-server-filesystem"));
    let text =
        format!("policy_default = \"allow\"\n[mcp.fs]\ncommand = {node:?}\nargs = [{script:?}]\n");
    let project = Project::of(&[("toolcrib.toml", &text), ("one/a", ""), ("two/b", "")]);
    let folder = |name: &str| fs::canonicalize(project.path().join(name)).unwrap();
    let mut client = Client::of(&project, folder("one"));
    let sees = |client: &mut Client, name: &str| {
        let name = folder(name).display().to_string();
        wait_for(|| client.call("mcp__fs__list_allowed_directories").contains(&name));
    };
    sees(&mut client, "one");
    client.root = folder("two");
    client.send(json!({ "method": "notifications/roots/list_changed" }));
    sees(&mut client, "two");
}

/// Version 2 of the SDK asks in the middle of a call only in a session of 2025-11-25.
#[test]
fn a_server_with_both_versions_is_greeted_with_the_declared_one() {
    let Some(peers) = Peers::find() else { return };
    let server = "from mcp.server.mcpserver import Context, MCPServer\n\
        from pydantic import BaseModel\n\
        class Who(BaseModel):\n    name: str\n\
        server = MCPServer('py')\n\
        @server.tool()\n\
        async def ask(ctx: Context) -> str:\n\
        \x20   return 'hi ' + (await ctx.elicit('Who?', Who)).data.name\n\
        server.run()\n";
    let text = format!(
        "policy_default = \"allow\"\n[mcp.py]\ncommand = {:?}\nargs = [\"-IB\", \"server.py\"]\n\
         protocol = \"2025-11-25\"\nfence = \"off\"\n",
        peers.path("venv/bin/python")
    );
    let project = Project::of(&[("toolcrib.toml", &text), ("server.py", server)]);
    let mut client = Client::of(&project, project.path().to_owned());
    // A call waits only so long for a server that is starting.
    wait_for(|| client.call("mcp__py__ask") == "hi Ana");
}

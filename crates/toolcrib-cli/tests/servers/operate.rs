//! A gateway in operation: limits, logs, metrics, drain, TLS, and reloads while it is used.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    gateway::{Http, Piped, message},
    support::{Outcome, Project, in_full, python_server, toolcrib, wait_for},
};

/// A server with a tool that takes the requested time.
const SERVER: &str = r#"
import os, time
def answer(method, params):
    if method == "tools/list":
        return {"tools": [{"name": "nap", "description": "Naps for some milliseconds.",
            "inputSchema": {"type": "object", "properties": {"ms": {"type": "integer"},
                                                              "note": {"type": "string"}}}}]}
    if method == "tools/call":
        ms = params["arguments"].get("ms", 0)
        print("napping %d with %s" % (ms, os.environ.get("S_TOKEN")), file=sys.stderr, flush=True)
        time.sleep(ms / 1000)
        return {"content": [{"type": "text", "text": "napped %d" % ms}]}
"#;

const TOKEN: &str = "a-token-of-a-test-0001";
const OTHER: &str = "a-token-of-a-test-0002";

fn server(name: &str) -> String {
    format!("[mcp.{name}]\ncommand = 'python3'\nargs = ['server.py']\n")
}

fn project(serve: &str) -> Project {
    let file = format!(
        "policy_default = 'allow'\n[secrets]\nA = {{ env = 'TEST_A' }}\nB = {{ env = 'TEST_B' }}\n\
         {}{serve}",
        server("s")
    );
    Project::of(&[("toolcrib.toml", &file), ("server.py", &python_server(SERVER))])
}

fn token(secret: &str, more: &str) -> String {
    format!("[[serve.token]]\nsecret = 'secret:{secret}'\nprincipal = '{secret}'\n{more}\n")
}

fn start(project: &Project, args: &[&str]) -> Http {
    let mut command = project.command(&[&["serve"], args].concat());
    command.env("TEST_A", TOKEN).env("TEST_B", OTHER);
    Http::start(&mut command, &errors(project))
}

fn errors(project: &Project) -> PathBuf {
    project.path().join("errors.txt")
}

fn nap(http: &Http, token: &str, tool: &str, ms: u32) -> (String, String) {
    let params = json!({ "name": tool, "arguments": { "ms": ms, "note": "confidential" } });
    http.post(Some(token), "tools/call", &params, None)
}

fn sample(metrics: &str, line: &str) -> u64 {
    let found = metrics.lines().find_map(|one| one.strip_prefix(line)?.strip_prefix(' '));
    found.map_or(0, |number| number.parse().unwrap())
}

#[test]
fn a_token_has_limits_and_every_call_is_counted_and_audited() {
    let limited = token("A", "calls_per_minute = 3") + &token("B", "max_concurrent = 1");
    let project = project(&format!("[serve]\naudit = 'audit.jsonl'\n{limited}"));
    let log = project.path().join("access.jsonl");
    let http = start(&project, &["--access-log", log.to_str().unwrap()]);
    for ms in 1..=3 {
        let (status, answer) = nap(&http, TOKEN, "mcp__s__nap", ms);
        assert_eq!(status, "200", "{answer}");
    }
    let (status, answer) = nap(&http, TOKEN, "mcp__s__nap", 4);
    assert_eq!(status, "429", "{answer}");
    let after = answer.lines().find_map(|line| {
        line.to_lowercase().strip_prefix("retry-after: ")?.trim().parse::<u64>().ok()
    });
    assert!(after.is_some_and(|seconds| (1..=20).contains(&seconds)), "{answer}");
    // A list is not a call, and another token has its own limits.
    let (status, _) = http.post(Some(TOKEN), "tools/list", &json!({}), None);
    assert_eq!(status, "200");
    thread::scope(|scope| {
        let long = scope.spawn(|| nap(&http, OTHER, "mcp__s__nap", 3000));
        wait_for(|| sample(&http.get("/metrics").1, "toolcrib_calls_running") == 1);
        assert_eq!(nap(&http, OTHER, "mcp__s__nap", 5).0, "429");
        assert_eq!(long.join().unwrap().0, "200");
    });
    let (status, metrics) = http.get("/metrics");
    assert_eq!(status, "200", "{metrics}");
    http.end();

    let entries: Vec<Value> = fs::read_to_string(&log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let logged = |method: &str, field: &str, value: Value| {
        let of_method = entries.iter().filter(|entry| entry["method"] == *method);
        u64::try_from(of_method.filter(|entry| entry[field] == value).count()).unwrap()
    };
    let calls = logged("tools/call", "code", Value::Null);
    assert!(calls >= 4);
    let counted = sample(&metrics, r#"toolcrib_calls_total{source="mcp:s",outcome="ok"}"#);
    assert_eq!(counted, calls, "{metrics}");
    let refused = sample(&metrics, r#"toolcrib_requests_total{method="http",outcome="429"}"#);
    assert_eq!(refused, logged("http", "status", json!(429)), "{metrics}");
    assert!(metrics.contains("toolcrib_server_up{server=\"s\"} 1"), "{metrics}");

    let audit = project.path().join("audit.jsonl");
    assert_eq!(fs::metadata(&audit).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&audit).unwrap();
    assert!(!text.contains("confidential") && !text.contains(TOKEN), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(u64::try_from(lines.len()).unwrap(), calls);
    let digests: Vec<_> = lines.iter().map(|line| line["arguments"].as_str().unwrap()).collect();
    let of_first =
        toolcrib_core::args_digest("mcp__s__nap", &json!({ "note": "confidential", "ms": 1 }));
    assert_eq!(digests[0], of_first.to_string());
    assert_ne!(digests[0], digests[1]);
    assert_eq!(lines[0]["principal"], json!("A"));
    assert_eq!(lines[0]["code"], json!("ok"));
}

#[test]
fn what_a_server_writes_to_stderr_is_shown_while_it_runs() {
    let project = Project::of(&[
        ("toolcrib.toml", &format!("{}env = {{ S_TOKEN = 'hush-59d1c07e' }}\n", server("s"))),
        ("server.py", &python_server(SERVER)),
    ]);
    let none = project.toolcrib(&["mcp", "logs", "s"]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("there is no log of `s`"), "{}", none.stderr);
    let mut client = Piped::start(&mut project.command(&["serve"]));
    let params = json!({ "name": "mcp__s__nap", "arguments": { "ms": 3 } });
    client.ask(&message(5, "tools/call", &params));
    let mut shown = String::new();
    wait_for(|| {
        shown = project.toolcrib(&["mcp", "logs", "s", "-n", "1"]).stdout;
        shown.contains("napping 3")
    });
    assert_eq!(shown.lines().count(), 1);
    assert!(!shown.contains("hush-59d1c07e"), "{shown}");
    client.end();
    let log = project.state().join("logs/s.log");
    assert_eq!(fs::metadata(log).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn imported_servers_of_one_name_have_separate_logs() {
    let python = python_server(SERVER);
    let folders = Project::of(&[("a/server.py", &python), ("b/server.py", &python)]);
    let servers = r#"{ "mcpServers": { "s": { "command": "python3", "args": ["server.py"] } } }"#;
    let run = |folder: &str, args: &[&str]| -> Outcome {
        folders.write(&format!("{folder}/.mcp.json"), servers);
        let mut command = toolcrib();
        command.args(args).args(["--import", ".mcp.json"]).current_dir(folders.path().join(folder));
        command.env("XDG_STATE_HOME", folders.path().join("state")).output().unwrap().into()
    };
    let called = run("a", &["call", "mcp__s__nap", "ms=3"]);
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    assert!(run("a", &["mcp", "logs", "s"]).stdout.contains("napping 3"));
    let none = run("b", &["mcp", "logs", "s"]);
    assert_eq!((none.code, &*none.stdout), (Some(1), ""), "{}", none.stderr);
}

#[test]
fn the_audit_log_is_never_another_file() {
    let project = project(&format!("[serve]\naudit = 'server.py'\n{}", token("A", "")));
    let mut command = project.command(&["serve", "--http", "0"]);
    let refused = command.env("TEST_A", TOKEN).env("TEST_B", OTHER).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("must be named *.jsonl"), "{said}");
    let server = fs::read_to_string(project.path().join("server.py")).unwrap();
    assert_eq!(server, python_server(SERVER));
    std::os::unix::fs::symlink("server.py", project.path().join("audit.log")).unwrap();
    let file = fs::read_to_string(project.path().join("toolcrib.toml")).unwrap();
    project.write("toolcrib.toml", &file.replace("'server.py'\n[[", "'audit.log'\n[["));
    let mut command = project.command(&["serve", "--http", "0"]);
    let refused = command.env("TEST_A", TOKEN).env("TEST_B", OTHER).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn a_stopped_gateway_lets_calls_end_and_exits_with_0() {
    let project = project(&token("A", ""));
    let http = start(&project, &[]);
    assert_eq!(nap(&http, TOKEN, "mcp__s__nap", 1).0, "200");
    thread::scope(|scope| {
        let call = scope.spawn(|| nap(&http, TOKEN, "mcp__s__nap", 2000));
        wait_for(|| sample(&http.get("/metrics").1, "toolcrib_calls_running") == 1);
        http.terminate();
        let (status, answer) = call.join().unwrap();
        assert_eq!(status, "200", "{answer}");
        assert!(answer.contains("napped 2000"), "{answer}");
    });
    assert_eq!(http.ended(), Some(0));

    // A call that takes longer than the limit is cut off.
    let project = self::project(&format!("[serve]\ndrain = '200ms'\n{}", token("A", "")));
    let http = start(&project, &[]);
    assert_eq!(nap(&http, TOKEN, "mcp__s__nap", 1).0, "200");
    thread::scope(|scope| {
        let call = scope.spawn(|| nap(&http, TOKEN, "mcp__s__nap", 60_000));
        wait_for(|| sample(&http.get("/metrics").1, "toolcrib_calls_running") == 1);
        http.terminate();
        // The client may lose the connection.
        if let Ok((_, answer)) = call.join() {
            assert!(!answer.contains("napped"), "{answer}");
        }
    });
    assert_eq!(http.ended(), Some(0));
}

#[test]
fn serve_uses_https_with_certificate_files() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let project = project(&format!(
        "[serve.tls]\ncertificate = 'cert.pem'\nkey = 'key.pem'\n{}",
        token("A", "")
    ));
    project.write("cert.pem", &made.cert.pem());
    let mut command = project.command(&["serve", "--http", "0"]);
    command.env("TEST_A", TOKEN).env("TEST_B", OTHER);
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("[serve.tls]") && said.contains("key.pem"), "{said}");

    project.write("key.pem", &made.signing_key.serialize_pem());
    let said = fs::File::create(errors(&project)).unwrap();
    let mut child = command.stderr(said).spawn().unwrap();
    let mut port = String::new();
    wait_for(|| {
        let said = fs::read_to_string(errors(&project)).unwrap();
        let found =
            said.split_once("https://127.0.0.1:").and_then(|(_, rest)| rest.split_once('/'));
        port = found.map(|(port, _)| port.to_owned()).unwrap_or_default();
        !port.is_empty()
    });
    let curl = |scheme: &str| {
        let url = format!("{scheme}://localhost:{port}/healthz");
        let certificate = project.path().join("cert.pem");
        let resolved = format!("localhost:{port}:127.0.0.1");
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--max-time", "20", "--resolve", &resolved, "--cacert"]);
        let output = curl.arg(certificate).arg(url).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(curl("https"), "ok\n");
    assert_ne!(curl("http"), "ok\n", "no plain HTTP at that address");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Stops the callers when it is dropped.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn reloads_drop_no_call() {
    let tokens = token("A", "") + &token("B", "");
    let project = project(&tokens);
    let file = fs::read_to_string(project.path().join("toolcrib.toml")).unwrap();
    let http = start(&project, &[]);
    assert_eq!(nap(&http, TOKEN, "mcp__s__nap", 1).0, "200");
    let session = http.begin(OTHER);
    let (stop, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    let failed = parking_lot::Mutex::new(Vec::new());
    let lasts = Duration::from_secs(if in_full() { 60 } else { 2 });
    let reloads = || sample(&http.get("/metrics").1, r#"toolcrib_reloads_total{outcome="ok"}"#);
    thread::scope(|scope| {
        for caller in 0..64_u32 {
            let (http, stop, calls, failed, session) = (&http, &stop, &calls, &failed, &session);
            scope.spawn(move || {
                let mut n = caller * 1_000_000;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    let ms = n % 20;
                    let params = json!({
                        "name": "mcp__s__nap", "arguments": { "ms": ms, "note": n.to_string() },
                    });
                    // Without a session, as a token's client, and in a session.
                    let (status, answer) = match caller % 2 {
                        0 => http.post(Some(TOKEN), "tools/call", &params, None),
                        _ => http.call_in(OTHER, session, n, &params),
                    };
                    calls.fetch_add(1, Ordering::Relaxed);
                    if status != "200" || !answer.contains(&format!("napped {ms}")) {
                        failed.lock().push(answer);
                    }
                }
            });
        }
        // Also if a wait ends in a panic: the scope waits for the callers.
        let _stop = StopAtEnd(&stop);
        let began = Instant::now();
        let mut at = 0;
        let is_enough = || reloads() >= 3 && calls.load(Ordering::Relaxed) > 64;
        while began.elapsed() < lasts || !is_enough() {
            assert!(began.elapsed() < lasts + Duration::from_secs(300), "calls or reloads hang");
            at += 1;
            let before = reloads();
            let more = if at % 2 == 1 { server("gone") } else { String::new() };
            project.write("toolcrib.toml", &format!("{file}\n# {at}\n{more}"));
            wait_for(|| reloads() > before);
        }
    });
    let failed = failed.into_inner();
    let calls = calls.load(Ordering::Relaxed);
    assert!(failed.is_empty(), "{} of {calls} failed, such as: {}", failed.len(), failed[0]);
    assert_eq!(http.end(), Some(0));
}

#[test]
fn a_broken_configuration_keeps_the_old_one_and_clients_learn_of_a_new_one() {
    let project = project("");
    let file = fs::read_to_string(project.path().join("toolcrib.toml")).unwrap();
    let said = fs::File::create(errors(&project)).unwrap();
    let mut command = project.command(&["serve"]);
    command.env("TEST_A", TOKEN).env("TEST_B", OTHER);
    let mut client = Piped::start_with(&mut command, said.into());
    let call = |client: &mut Piped, tool: &str, ms: u32| {
        let params = json!({ "name": tool, "arguments": { "ms": ms } });
        client.ask(&message(20 + ms, "tools/call", &params)).to_string()
    };
    // A call waits for its server, however long it starts; a list waits for five seconds.
    assert!(call(&mut client, "mcp__s__nap", 0).contains("napped 0"));
    assert_eq!(client.tools(), ["mcp__s__nap"]);
    project.write("toolcrib.toml", &format!("{file}\n[mcp.more]\ncomand = 'python3'\n"));
    let errors = || fs::read_to_string(errors(&project)).unwrap();
    wait_for(|| errors().contains("the previous one stays in use"));
    assert!(errors().contains("comand"), "{}", errors());
    assert!(call(&mut client, "mcp__s__nap", 1).contains("napped 1"));

    project.write("toolcrib.toml", &format!("{file}\n{}", server("more")));
    client.hear("notifications/tools/list_changed");
    assert_eq!(client.tools(), ["mcp__s__nap", "mcp__more__nap"]);
    assert!(call(&mut client, "mcp__more__nap", 2).contains("napped 2"));

    project.write("toolcrib.toml", &file);
    client.hear("notifications/tools/list_changed");
    assert_eq!(client.tools(), ["mcp__s__nap"]);
    assert!(!call(&mut client, "mcp__more__nap", 3).contains("napped"));
    assert!(call(&mut client, "mcp__s__nap", 4).contains("napped 4"));
}

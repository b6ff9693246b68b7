//! Two gateways with separate homes on one PostgreSQL: what a client has at one of them, it has at the other.

use std::{
    collections::HashMap,
    fs,
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolcrib_testbed::PostgresServer;

use crate::{
    serve::{Http, message},
    support::{Project, in_full, wait_for},
};

const ANN: &str = "a-token-of-ann-000001";
const BEN: &str = "a-token-of-ben-000001";

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/fixtures/caller_server.py");

/// The desk of the tests: `count` and `pay` append to files.
const FILE: &str = r#"
policy_default = "allow"
[secrets]
DATABASE = { env = "TOOLCRIB_TEST_DATABASE" }
MARKS = { env = "TOOLCRIB_TEST_MARKS" }
KEY = { env = "TOOLCRIB_TEST_KEY" }
ANN = { env = "TOOLCRIB_TEST_ANN" }
BEN = { env = "TOOLCRIB_TEST_BEN" }
[sessions]
store = "secret:DATABASE"
accept_loss = true
[approvals]
key = "secret:KEY"
marks = "secret:MARKS"
[serve]
audit = "audit.jsonl"
[[serve.token]]
secret = "secret:ANN"
principal = "ann"
reveal = "append"
[[serve.token]]
secret = "secret:BEN"
principal = "ben"
calls_per_minute = LIMIT
[[tool]]
kind = "command"
name = "count"
description = "Counts."
program = "sh"
args = ["-c", "printf '%s\\n' \"$1\" >> counted.txt", "count", "{id}"]
inherit_env = ["PATH"]
params = { id = { type = "string" } }
[[tool]]
kind = "command"
name = "hidden"
description = "Waters the tulips of the garden."
program = "echo"
args = ["watered"]
read_only = true
defer = true
"#;

/// Rules that read what earlier calls have led to.
const STRICT: &str = r#"
[[policy]]
effect = "ask"
tool = "pay"
[[policy]]
effect = "deny"
tool = "count"
tainted = true
[[tool]]
kind = "command"
name = "pay"
description = "Pays."
program = "sh"
args = ["-c", "printf '%s\\n' \"$1\" >> paid.txt", "pay", "{to}"]
inherit_env = ["PATH"]
params = { to = { type = "string" } }
"#;

/// A project and its database, for any number of gateways.
struct Team {
    project: Project,
    variables: HashMap<&'static str, String>,
    started: AtomicUsize,
}

impl Team {
    /// `None` without PostgreSQL.
    fn new(limit: u32, more: &str) -> Option<Self> {
        let server = PostgresServer::shared()?;
        let url = || server.url("owner", &server.database("").unwrap());
        let (store, marks) = (url(), url());
        Some(Self::at(store, marks, limit, more))
    }

    fn at(store: String, marks: String, limit: u32, more: &str) -> Self {
        let file = FILE.replace("LIMIT", &limit.to_string());
        let server = format!("[mcp.desk]\ncommand = 'python3'\nargs = ['{SERVER}']\n");
        let file = format!("{file}{more}\n{server}");
        let project = Project::of(&[("toolcrib.toml", &file)]);
        let variables = HashMap::from([
            ("TOOLCRIB_TEST_DATABASE", store),
            ("TOOLCRIB_TEST_MARKS", marks),
            ("TOOLCRIB_TEST_KEY", "0123456789abcdef0123456789abcdef".to_owned()),
            ("TOOLCRIB_TEST_ANN", ANN.to_owned()),
            ("TOOLCRIB_TEST_BEN", BEN.to_owned()),
        ]);
        Self { project, variables, started: AtomicUsize::new(0) }
    }

    /// A command with the home of a machine.
    fn command(&self, args: &[&str], machine: usize) -> Command {
        let home = self.project.path().join(format!("home-{machine}"));
        let mut command = self.project.command(args);
        command.arg("--state").arg(home.join("state")).envs(&self.variables);
        command.env("HOME", &home).env("XDG_CONFIG_HOME", home.join("config"));
        command
    }

    /// Starts a gateway on another machine.
    fn replica(&self) -> Http {
        let machine = self.started.fetch_add(1, Ordering::Relaxed);
        let errors = self.project.path().join(format!("errors-{machine}.txt"));
        Http::start(&mut self.command(&["serve"], machine), &errors)
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.project.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn errors(&self, machine: usize) -> PathBuf {
        self.project.path().join(format!("errors-{machine}.txt"))
    }
}

fn count(id: &str) -> Value {
    json!({ "name": "count", "arguments": { "id": id } })
}

/// The result of a response, also in a stream.
fn result(answer: &str) -> Value {
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let all = body.lines().filter_map(|line| {
        let json = line.strip_prefix("data: ").unwrap_or(line);
        serde_json::from_str::<Value>(json).ok()
    });
    all.filter(|message| message.get("method").is_none()).last().unwrap_or_default()
}

fn tools(http: &Http, session: &str) -> Vec<String> {
    let (status, answer) = http.post(Some(ANN), "tools/list", &json!({}), Some(session));
    assert_eq!(status, "200", "{answer}");
    let listed = result(&answer);
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_session_continues_at_each_replica_until_its_client_ends_it() {
    let Some(team) = Team::new(60, "") else { return };
    let (one, two) = (team.replica(), team.replica());
    let session = one.begin(ANN);
    for (id, http) in [&one, &two, &one, &two].into_iter().enumerate() {
        let (status, answer) = http.call_in(ANN, &session, 10, &count(&id.to_string()));
        assert_eq!(status, "200", "{answer}");
        assert!(result(&answer)["result"]["isError"] != json!(true), "{answer}");
    }
    assert_eq!(team.lines("counted.txt"), ["0", "1", "2", "3"]);
    // It is of its token only, and a changed id is none.
    assert_eq!(two.call_in(BEN, &session, 11, &count("x")).0, "404");
    let changed = session.replace(&session[20..21], if &session[20..21] == "a" { "b" } else { "a" });
    assert_eq!(two.call_in(ANN, &changed, 11, &count("x")).0, "404");

    // What it finds at one is in its menu at the other.
    assert!(!tools(&two, &session).contains(&"hidden".to_owned()));
    let search = json!({ "name": "search_tools", "arguments": { "needs": ["water the tulips"] } });
    let (_, answer) = one.call_in(ANN, &session, 12, &search);
    assert!(answer.contains("hidden"), "{answer}");
    assert!(tools(&two, &session).contains(&"hidden".to_owned()));

    // A replica that is gone takes nothing with it, and a new one knows the session.
    drop(one);
    let three = team.replica();
    assert!(tools(&three, &session).contains(&"hidden".to_owned()));
    let (status, answer) = three.call_in(ANN, &session, 13, &count("4"));
    assert_eq!((&*status, team.lines("counted.txt").len()), ("200", 5), "{answer}");

    assert_eq!(two.delete(ANN, &session), "202");
    for http in [&three, &two] {
        let (status, answer) = http.call_in(ANN, &session, 14, &count("x"));
        assert_eq!(status, "404", "{answer}");
        assert_eq!(http.delete(ANN, &session), "404");
    }
    assert_eq!(team.lines("counted.txt").len(), 5);
}

#[test]
fn what_a_session_has_read_at_one_replica_restricts_it_at_the_other() {
    let Some(team) = Team::new(60, STRICT) else { return };
    let (one, two) = (team.replica(), team.replica());
    let session = one.begin(ANN);
    let (_, answer) = two.call_in(ANN, &session, 10, &count("before"));
    assert!(answer.contains("\"result\""), "{answer}");
    let who = json!({ "name": "mcp__desk__who" });
    let (_, answer) = one.call_in(ANN, &session, 11, &who);
    assert!(answer.contains("who="), "{answer}");
    // At once, and at both.
    for http in [&two, &one] {
        let (_, answer) = http.call_in(ANN, &session, 12, &count("after"));
        assert!(!answer.contains("\"structuredContent\""), "{answer}");
        assert_eq!(team.lines("counted.txt"), ["before"], "{answer}");
    }
    // Requests without a session share it by their principal.
    let (_, answer) = two.post(Some(BEN), "tools/call", &who, None);
    assert!(answer.contains("who="), "{answer}");
    let (_, answer) = one.post(Some(BEN), "tools/call", &count("after"), None);
    assert_eq!(team.lines("counted.txt"), ["before"], "{answer}");
}

#[test]
fn a_limit_of_five_calls_a_minute_is_five_over_two_replicas() {
    let Some(team) = Team::new(5, "") else { return };
    let (one, two) = (team.replica(), team.replica());
    let began = Instant::now();
    let calls = (0..10).map(|id| {
        let http = [&one, &two][id % 2];
        http.post(Some(BEN), "tools/call", &count(&id.to_string()), None)
    });
    let statuses: Vec<_> = calls.map(|(status, _)| status).collect();
    let made = statuses.iter().filter(|status| *status == "200").count();
    // One more each 12 seconds.
    let more = usize::try_from(began.elapsed().as_secs() / 12).unwrap();
    assert!((5..=5 + more).contains(&made), "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| *status == "429").count(), 10 - made);
    assert_eq!(team.lines("counted.txt").len(), made);
}

#[test]
fn a_large_limit_is_not_exceeded_over_two_replicas() {
    let Some(team) = Team::new(120, "") else { return };
    let (one, two) = (team.replica(), team.replica());
    let (began, made) = (Instant::now(), AtomicU32::new(0));
    thread::scope(|scope| {
        for caller in 0..4 {
            let (http, made) = ([&one, &two][caller % 2], &made);
            scope.spawn(move || {
                for id in 0..50 {
                    let call = count(&format!("{caller} {id}"));
                    let (status, answer) = http.post(Some(BEN), "tools/call", &call, None);
                    assert!(["200", "429"].contains(&&*status), "{answer}");
                    made.fetch_add(u32::from(status == "200"), Ordering::Relaxed);
                }
            });
        }
    });
    let most = 120 + 2 * u32::try_from(began.elapsed().as_secs() + 1).unwrap();
    let made = made.into_inner();
    assert!((100..=most).contains(&made), "{made} of {most}");
    assert_eq!(team.lines("counted.txt").len(), usize::try_from(made).unwrap());
}

/// A request of 2026-07-28 of a client that can be asked, with more parameters.
fn ask(http: &Http, more: &[(&str, &Value)]) -> Value {
    let mut params = json!({
        "name": "mcp__desk__ask", "arguments": { "form": r#"{"type":"object","properties":{}}"# },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        },
    });
    for (name, value) in more {
        params[*name] = (*value).clone();
    }
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
        Mcp-Name: mcp__desk__ask\r\n";
    let (_, answer) = http.send(Some(ANN), headers, &message(7, "tools/call", &params));
    result(&answer)
}

#[test]
fn a_call_that_waits_for_input_goes_on_from_each_replica_and_once() {
    let Some(team) = Team::new(60, "") else { return };
    let (one, two) = (team.replica(), team.replica());
    for (asked, answered) in [(&one, &two), (&two, &one), (&one, &one)] {
        let waits = ask(asked, &[]);
        let state = &waits["result"]["requestState"];
        let requests = waits["result"]["inputRequests"].as_object();
        let keys = requests.unwrap_or_else(|| panic!("{waits}")).keys();
        let responses: Value =
            keys.map(|key| (key.clone(), json!({ "action": "decline" }))).collect();
        let round = [("requestState", state), ("inputResponses", &responses)];
        let done = ask(answered, &round);
        assert!(done.to_string().contains("decline"), "{done}");
        for http in [asked, answered] {
            let again = ask(http, &round);
            assert_eq!(again["error"]["code"], json!(-32602), "{again}");
        }
    }
    // With its replica, the call is gone.
    let waits = ask(&one, &[]);
    drop(one);
    let gone = ask(&two, &[("requestState", &waits["result"]["requestState"])]);
    assert_eq!(gone["error"]["code"], json!(-32602), "{gone}");
}

#[test]
fn an_approval_that_is_given_at_one_replica_is_used_once_by_either() {
    let Some(team) = Team::new(60, STRICT) else { return };
    let (one, two) = (team.replica(), team.replica());
    let rounds = if in_full() { 100 } else { 4 };
    for round in 0..rounds {
        let to = format!("p{round}");
        let pay = json!({ "name": "pay", "arguments": { "to": to } });
        let (_, answer) = one.post(Some(ANN), "tools/call", &pay, None);
        let listed = team.command(&["approvals", "--json"], 2).output().unwrap();
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        let id = listed["approvals"][0]["id"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let approved = team.command(&["approve", id, "--yes"], 2).output().unwrap();
        assert!(approved.status.success(), "{approved:?}");
        thread::scope(|scope| {
            for http in [&one, &two, &one, &two] {
                let pay = &pay;
                scope.spawn(move || http.post(Some(ANN), "tools/call", pay, None));
            }
        });
        let paid = team.lines("paid.txt");
        assert_eq!(paid.iter().filter(|one| **one == to).count(), 1, "{paid:?}");
        // The others wait again.
        let waiting = team.command(&["approvals", "--json"], 2).output().unwrap();
        let waiting: Value = serde_json::from_slice(&waiting.stdout).unwrap();
        for one in waiting["approvals"].as_array().unwrap() {
            let id = one["id"].as_str().unwrap();
            team.command(&["deny", id], 2).output().unwrap();
        }
    }
}

#[test]
fn replicas_show_their_configuration_and_number_their_audit_lines() {
    let Some(team) = Team::new(60, "") else { return };
    let (one, two) = (team.replica(), team.replica());
    let digest = |http: &Http| {
        let (_, answer) = http.get("/readyz");
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["config"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    assert_eq!(digest(&one), digest(&two));
    let metrics = one.get("/metrics").1;
    let sample = format!("toolcrib_config_info{{digest=\"{}\"}} 1", digest(&one));
    assert!(metrics.contains(&sample), "{metrics}");
    for (http, calls) in [(&one, 2), (&two, 1)] {
        (0..calls).for_each(|_| {
            http.post(Some(ANN), "tools/call", &count("x"), None);
        });
    }
    let lines = team.lines("audit.jsonl");
    let mut sequences = HashMap::<String, Vec<u64>>::new();
    for line in lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let replica = line["replica"].as_str().unwrap().to_owned();
        sequences.entry(replica).or_default().push(line["sequence"].as_u64().unwrap());
    }
    let mut sequences: Vec<_> = sequences.into_values().collect();
    sequences.sort();
    assert_eq!(sequences, [vec![1], vec![1, 2]]);
    // A file that one of them has not read yet is seen.
    let before = digest(&one);
    let file = team.project.path().join("toolcrib.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text + "\n# changed\n").unwrap();
    wait_for(|| digest(&one) != before && digest(&one) == digest(&two));
}

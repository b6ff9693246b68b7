//! Two gateways with separate homes on one PostgreSQL: each continues the sessions and the restrictions of the
//! other one's clients.

mod waiting;

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
use toolcrib_testbed::{IdentityProvider, PostgresServer, ProtectedServer};

use crate::{
    gateway::{Http, message},
    oauth::logged_in,
    support::{Outcome, Project, in_full, wait_for},
};

const ANN: &str = "a-token-of-ann-000001";
const BEN: &str = "a-token-of-ben-000001";

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/caller_server.py");

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
[artifacts]
[limits]
batch_result_chars = 1000
[serve]
audit = "audit.jsonl"
drain = "60s"
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
name = "numbers"
description = "Numbers."
program = "seq"
args = ["5000"]
read_only = true
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
[[policy]]
effect = "halt"
tool = "stop"
[[tool]]
kind = "command"
name = "stop"
description = "Stops."
program = "true"
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
        self.replica_at("0")
    }

    fn replica_at(&self, address: &str) -> Http {
        let machine = self.started.fetch_add(1, Ordering::Relaxed);
        let errors = self.project.path().join(format!("errors-{machine}.txt"));
        let http = Http::start_at(&mut self.command(&["serve"], machine), address, &errors);
        // Its server starts slowly on a machine that is busy.
        wait_for(|| http.get("/readyz").0 == "200");
        http
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
    // The size of a chunk is a number.
    let mut answers = all.filter(|message| message.is_object() && message.get("method").is_none());
    answers.next_back().unwrap_or_default()
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
    let Some(team) = Team::new(60, "[[tool]]\nkind = \"todo\"\n") else { return };
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
    let changed =
        session.replace(&session[20..21], if &session[20..21] == "a" { "b" } else { "a" });
    assert_eq!(two.call_in(ANN, &changed, 11, &count("x")).0, "404");

    // What it finds at one is in its menu at the other.
    assert!(!tools(&two, &session).contains(&"hidden".to_owned()));
    let search = json!({ "name": "search_tools", "arguments": { "needs": ["water the tulips"] } });
    let (_, answer) = one.call_in(ANN, &session, 12, &search);
    assert!(answer.contains("hidden"), "{answer}");
    assert!(tools(&two, &session).contains(&"hidden".to_owned()));

    // What its tools store for it is read at the other.
    let add = json!({ "name": "todo_add", "arguments": { "content": "Water the tulips." } });
    assert!(one.call_in(ANN, &session, 17, &add).1.contains("tulips"));
    let (_, answer) = two.call_in(ANN, &session, 18, &json!({ "name": "todo_list" }));
    assert!(answer.contains("Water the tulips."), "{answer}");

    // So is a result that is too large.
    let (_, answer) = one.call_in(ANN, &session, 13, &json!({ "name": "numbers" }));
    let id = answer.split("artifact_read ").nth(1).unwrap_or_else(|| panic!("{answer}"));
    let id = id.split(']').next().unwrap();
    let read = json!({ "name": "artifact_read", "arguments": { "id": id } });
    let (_, answer) = two.call_in(ANN, &session, 14, &read);
    assert!(answer.contains("1\\n2\\n3"), "{answer}");

    // A replica that is gone takes nothing with it, and a new one knows the session.
    drop(one);
    let three = team.replica();
    assert!(tools(&three, &session).contains(&"hidden".to_owned()));
    let (status, answer) = three.call_in(ANN, &session, 15, &count("4"));
    assert_eq!((&*status, team.lines("counted.txt").len()), ("200", 5), "{answer}");

    assert_eq!(two.delete(ANN, &session), "202");
    for http in [&three, &two] {
        let (status, answer) = http.call_in(ANN, &session, 16, &count("x"));
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
    // So does a rule that halts it.
    let halted = two.begin(ANN);
    let stop = json!({ "name": "stop" });
    assert_eq!(two.call_in(ANN, &halted, 13, &stop).0, "200");
    let (_, answer) = one.call_in(ANN, &halted, 14, &json!({ "name": "numbers" }));
    assert!(!answer.contains("artifact_read"), "{answer}");
    // Requests without a session share it by their principal.
    let (_, answer) = two.post(Some(BEN), "tools/call", &who, None);
    assert!(answer.contains("who="), "{answer}");
    let (_, answer) = one.post(Some(BEN), "tools/call", &count("after"), None);
    assert_eq!(team.lines("counted.txt"), ["before"], "{answer}");
}

/// The transactions of a database so far, which the server counts with a delay of ten seconds.
fn transactions(team: &Team) -> u64 {
    thread::sleep(Duration::from_secs(11));
    let database = team.variables["TOOLCRIB_TEST_DATABASE"].rsplit('=').next().unwrap();
    let count = format!("SELECT xact_commit FROM pg_stat_database WHERE datname = '{database}'");
    PostgresServer::shared().unwrap().psql("postgres", &count).unwrap().parse().unwrap()
}

#[test]
fn calls_without_rules_about_earlier_ones_cost_no_round_trip_each() {
    let Some(team) = Team::new(60, "") else { return };
    let one = team.replica();
    let session = one.begin(ANN);
    let who = json!({ "name": "mcp__desk__who" });
    let call = |id| {
        assert_eq!(one.call_in(ANN, &session, id, &who).0, "200");
        assert_eq!(one.post(Some(ANN), "tools/call", &who, None).0, "200");
    };
    call(1);
    let (before, began) = (transactions(&team), Instant::now());
    (2..152).for_each(call);
    let seconds = began.elapsed().as_secs();
    let made = transactions(&team) - before;
    // One read a second of the session and one of the caller, and a note of the taint each minute.
    assert!(made <= 10 + 3 * (seconds + 1), "{made} transactions in {seconds} s");
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

/// The ids of the calls that wait, of `approvals --json`.
fn open(listed: &Value) -> impl Iterator<Item = &str> {
    let all = listed["approvals"].as_array().unwrap().iter();
    all.filter(|one| one["state"] == "open").map(|one| one["id"].as_str().unwrap())
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
        let id = open(&listed).next().unwrap_or_else(|| panic!("{answer}"));
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
        for id in open(&waiting) {
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

/// The way to a server, which the test cuts and opens again.
struct Line {
    port: u16,
    is_cut: Arc<AtomicBool>,
}

impl Line {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (own, is_cut) = (listener.local_addr().unwrap().port(), Arc::<AtomicBool>::default());
        let cut = Arc::clone(&is_cut);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if cut.load(Ordering::Acquire) {
                    continue;
                }
                let server = TcpStream::connect(("localhost", port)).unwrap();
                for (mut from, mut to) in
                    [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
                {
                    let cut = Arc::clone(&cut);
                    thread::spawn(move || {
                        let mut part = [0; 4096];
                        from.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                        while !cut.load(Ordering::Acquire) {
                            match from.read(&mut part) {
                                Ok(0) => break,
                                Ok(read) if to.write_all(&part[..read]).is_ok() => {}
                                Err(error) if error.raw_os_error() == Some(11) => {}
                                _ => break,
                            }
                        }
                        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                    });
                }
            }
        });
        Self { port: own, is_cut }
    }

    fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Release);
    }
}

#[test]
fn without_its_database_a_gateway_refuses_what_it_cannot_know_and_goes_on_with_the_rest() {
    let Some(server) = PostgresServer::shared() else { return };
    let line = Line::to(server.port());
    let url = || {
        let database = server.database("").unwrap();
        format!("postgres://owner@localhost:{}/{database}?sslmode=disable", line.port)
    };
    let (store, marks) = (url(), url());
    let team = Team::at(store.clone(), marks.clone(), 60, "");
    let strict = Team::at(store, marks, 60, STRICT);
    let (one, two) = (team.replica(), strict.replica());
    let who = json!({ "name": "mcp__desk__who" });
    let session = one.begin(ANN);
    assert_eq!(one.call_in(ANN, &session, 10, &who).0, "200");
    assert_eq!(two.post(Some(ANN), "tools/call", &who, None).0, "200");
    line.cut(true);

    // Without a session and a rule about earlier calls.
    let (status, answer) = one.post(Some(ANN), "tools/call", &who, None);
    assert!(status == "200" && answer.contains("who="), "{answer}");
    // A caller counts as one that has read untrusted content, and its result is withheld.
    let (_, answer) = two.post(Some(ANN), "tools/call", &count("x"), None);
    assert!(strict.lines("counted.txt").is_empty(), "{answer}");
    let (_, answer) = two.post(Some(ANN), "tools/call", &who, None);
    assert!(!answer.contains("who="), "{answer}");
    // An approval can be neither requested nor used.
    let pay = json!({ "name": "pay", "arguments": { "to": "x" } });
    let (_, answer) = two.post(Some(ANN), "tools/call", &pay, None);
    assert!(strict.lines("paid.txt").is_empty(), "{answer}");
    // A session may have been ended, and a limit may be reached.
    wait_for(|| one.call_in(ANN, &session, 11, &who).0 == "503");
    assert_eq!(one.delete(ANN, &session), "503");
    assert_eq!(one.post(Some(BEN), "tools/call", &who, None).0, "503");
    assert_eq!(one.get("/healthz").0, "200");

    line.cut(false);
    wait_for(|| one.call_in(ANN, &session, 12, &who).0 == "200");
    wait_for(|| two.post(Some(ANN), "tools/call", &who, None).1.contains("who="));
    assert_eq!(one.post(Some(BEN), "tools/call", &who, None).0, "200");
}

#[test]
fn a_killed_replica_costs_the_requests_in_flight_there_and_no_call_runs_twice() {
    let Some(team) = Team::new(60, "") else { return };
    let (kills, callers) = if in_full() { (1_000, 64) } else { (5, 8) };
    let (ids, made, is_over) = (AtomicU32::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let replicas = [parking_lot::RwLock::new(team.replica()), team.replica().into()];
    let failed = thread::scope(|scope| {
        let session = replicas[0].read().begin(ANN);
        let caller = |caller: usize| {
            let (session, team) = (session.clone(), &team);
            let (ids, made, is_over, replicas) = (&ids, &made, &is_over, &replicas);
            move || {
                let mut failed = 0;
                for turn in 0.. {
                    if is_over.load(Ordering::Acquire) {
                        break;
                    }
                    let id = ids.fetch_add(1, Ordering::Relaxed);
                    let call = count(&id.to_string());
                    let http = replicas[(caller + turn) % 2].read();
                    // Half of them are of one session, the others without one.
                    let in_session = caller.is_multiple_of(2).then_some(&*session);
                    let status = http.try_call(ANN, in_session, 100 + id, &call);
                    drop(http);
                    match status.as_deref() {
                        Some("200") => made.fetch_add(1, Ordering::Relaxed),
                        // Its replica was killed.
                        None => {
                            failed += 1;
                            continue;
                        }
                        Some(other) => panic!("{other}: {:?}", team.errors(0)),
                    };
                }
                failed
            }
        };
        let callers: Vec<_> = (0..callers).map(|at| scope.spawn(caller(at))).collect();
        for kill in 0..kills {
            let before = made.load(Ordering::Relaxed);
            wait_for(|| made.load(Ordering::Relaxed) >= before + 20);
            let victim = &replicas[kill % 2];
            victim.read().kill();
            *victim.write() = team.replica();
        }
        is_over.store(true, Ordering::Release);
        callers.into_iter().map(|caller| caller.join().unwrap()).sum::<usize>()
    });
    let mut counted = team.lines("counted.txt");
    let lines = counted.len();
    counted.sort();
    counted.dedup();
    assert_eq!(counted.len(), lines, "a call ran twice");
    let made = made.into_inner();
    assert!(made <= lines && lines <= made + failed, "{made} made, {failed} failed, {lines} ran");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_counts_at_each_replica_and_is_renewed_once() {
    let provider = IdentityProvider::start().await.unwrap();
    let guarded = ProtectedServer::start(&provider).await.unwrap();
    let more = format!("[mcp.guarded]\nurl = \"{}\"", guarded.url());
    let Some(team) = Team::new(60, &more) else { return };
    let team = Arc::new(team);
    let login = ["mcp", "login", "guarded", "--no-browser", "--as", "ann"];
    let login = logged_in(team.command(&login, 0)).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    let run = async |machine: usize| {
        let mut call = team.command(&["mcp", "call", "guarded", "read", "--as", "ann"], machine);
        tokio::task::spawn_blocking(move || Outcome::from(call.output().unwrap())).await.unwrap()
    };
    let called = run(1).await;
    assert!(called.code == Some(0) && called.stdout.contains("got "), "{called:?}");
    // A refresh token is valid once: a second renewal with it would fail.
    let before = provider.requests("/token").len();
    provider.revoke_all(false);
    provider.set_delay(Duration::from_secs(1));
    let (one, two) = tokio::join!(run(1), run(2));
    for called in [one, two] {
        assert!(called.code == Some(0) && called.stdout.contains("got "), "{called:?}");
    }
    assert_eq!(provider.requests("/token").len(), before + 1);
    // With another secret, the stored login cannot be opened.
    let mut call = team.command(&["mcp", "call", "guarded", "read", "--as", "ann"], 3);
    call.env("TOOLCRIB_TEST_KEY", "f".repeat(32));
    let refused = Outcome::from(call.output().unwrap());
    assert!(refused.code != Some(0) && refused.stderr.contains("mcp login"), "{refused:?}");
    // The database has neither the tokens nor anything that they can be read from.
    let server = PostgresServer::shared().unwrap();
    let database = team.variables["TOOLCRIB_TEST_DATABASE"].rsplit('=').next().unwrap().to_owned();
    let rows = "SELECT convert_from(value, 'UTF8') FROM toolcrib.kv";
    let stored = server.psql(&database, rows).unwrap();
    for sent in guarded.authorizations().iter().flatten() {
        let token = sent.trim_start_matches("Bearer ");
        assert!(!stored.contains(token) && !stored.contains("access_token"), "{stored}");
    }
    assert!(!team.project.path().join("home-0/config/toolcrib/tokens").exists());
}

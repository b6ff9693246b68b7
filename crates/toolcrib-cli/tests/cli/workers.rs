//! Submitted messages, workers, and a store in PostgreSQL, as a project file names it.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use toolcrib_testbed::PostgresServer;

use crate::{
    approvals::{paid, project},
    support::{Outcome, Project},
};

/// Many times the usual time of a step.
const PATIENCE: Duration = Duration::from_secs(120);

const ON_SERVER: &str = r#"
[secrets]
DATABASE = { env = "TOOLCRIB_TEST_DATABASE" }
MARKS = { env = "TOOLCRIB_TEST_MARKS" }
KEY = { env = "TOOLCRIB_TEST_KEY" }
[sessions]
store = "secret:DATABASE"
accept_loss = true
[approvals]
key = "secret:KEY"
marks = "secret:MARKS"
"#;

/// A project with its store, and the environment of its commands.
struct Desk {
    project: Project,
    variables: Vec<(&'static str, String)>,
}

impl Desk {
    fn in_a_file() -> Self {
        Self { project: project(), variables: Vec::new() }
    }

    /// A project whose file names secrets with the URLs of databases.
    fn on(store: &str, marks: &str) -> Self {
        let project = project();
        let file = std::fs::read_to_string(project.path().join("toolcrib.toml")).unwrap();
        project.write("toolcrib.toml", &(file + ON_SERVER));
        let variables = vec![
            ("TOOLCRIB_TEST_DATABASE", store.to_owned()),
            ("TOOLCRIB_TEST_MARKS", marks.to_owned()),
            ("TOOLCRIB_TEST_KEY", "0123456789abcdef0123456789abcdef".to_owned()),
        ];
        Self { project, variables }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(args);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.command(args).output().unwrap().into()
    }

    fn json(&self, args: &[&str]) -> Value {
        let outcome = self.run(&[args, &["--json"]].concat());
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"))
    }

    fn submit(&self, message: &str) -> String {
        let outcome = self.run(&["submit", "-q", "--as", "ann", message]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout.trim().to_owned()
    }

    /// The id of the call that waits, once there is one.
    fn waiting(&self) -> String {
        let begun = Instant::now();
        loop {
            let listed = self.json(&["approvals"]);
            if let Some(id) = listed["approvals"][0]["id"].as_str() {
                return id.to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "no call waits: {listed}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn worker(&self) -> Worker {
        let mut command = self.command(&["worker", "--concurrency", "2", "--json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        Worker(child)
    }
}

struct Worker(Child);

impl Worker {
    /// Ends it as an operator does. Returns how each run ended.
    fn stop(mut self) -> Vec<String> {
        let pid = Pid::from_raw(self.0.id().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        let runs = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        let stopped = runs.map(|run| run["stopped"].as_str().unwrap().to_owned()).collect();
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
        stopped
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// The types of the lines of `follow --json`, with how the turn ended.
fn followed(outcome: &Outcome) -> (Vec<String>, String) {
    let lines = outcome.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines: Vec<_> = lines.collect();
    let types = lines.iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect();
    let end = lines.last().unwrap()["turn"]["stopped"].as_str().unwrap_or_default();
    (types, end.to_owned())
}

/// A message is submitted, its call approved, and the run followed to its end; another one is cancelled.
fn a_worker_runs(desk: &Desk) {
    let session = desk.submit("Pay nine");
    let worker = desk.worker();
    let following = desk.command(&["follow", &session, "--as", "ann", "--json"]);
    let mut following = following;
    let following = following.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = desk.waiting();
    assert_eq!(paid(&desk.project), "");
    let approved = desk.run(&["approve", &id, "--yes"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let outcome: Outcome = following.wait_with_output().unwrap().into();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let (types, end) = followed(&outcome);
    assert_eq!(types, ["turn", "message", "message", "message", "message", "end"], "{outcome:?}");
    assert_eq!(end, "answered");
    assert_eq!(paid(&desk.project), "9 to ann\n");

    let other = desk.submit("Pay ben");
    let _ = desk.waiting();
    let cancelled = desk.json(&["cancel", &other, "--as", "ann"]);
    assert_eq!(cancelled["cancelled"], true);
    let outcome = desk.run(&["follow", &other, "--as", "ann"]);
    assert_eq!(outcome.code, Some(3), "{outcome:?}");
    let nothing = desk.json(&["cancel", &other, "--as", "ann"]);
    assert_eq!(nothing["cancelled"], false);
    assert_eq!(paid(&desk.project), "9 to ann\n");
    assert_eq!(worker.stop(), ["awaiting_approval", "answered", "awaiting_approval"]);
}

#[test]
fn a_worker_runs_what_is_submitted() {
    a_worker_runs(&Desk::in_a_file());
}

#[test]
fn a_killed_worker_leaves_its_session_to_another() {
    let desk = Desk::in_a_file();
    let session = desk.submit("Hello");
    let mut worker = desk.worker();
    worker.0.kill().unwrap();
    worker.0.wait().unwrap();
    let worker = desk.worker();
    let outcome = desk.run(&["follow", &session, "--as", "ann"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("Hello."), "{outcome:?}");
    worker.stop();
}

/// The URL of a new database of the tests' server.
fn database(server: &PostgresServer) -> (String, String) {
    let name = server.database("").unwrap();
    (server.url("owner", &name), name)
}

#[test]
fn a_project_with_its_store_in_postgresql_is_worked_on() {
    let Some(server) = PostgresServer::shared() else { return };
    let desk = Desk::on(&database(server).0, &database(server).0);
    a_worker_runs(&desk);
}

#[test]
fn an_older_dump_of_the_database_revives_no_approval() {
    let Some(server) = PostgresServer::shared() else { return };
    let ((store, name), marks) = (database(server), database(server).0);
    let desk = Desk::on(&store, &marks);
    assert_eq!(desk.run(&["run", "Pay nine", "--as", "ann"]).code, Some(4));
    assert_eq!(desk.run(&["approve", &desk.waiting(), "--yes"]).code, Some(0));
    // All programs have ended, so none uses the database.
    let begun = Instant::now();
    let dump = format!("CREATE DATABASE older_{name} TEMPLATE {name}");
    while let Err(error) = server.psql("postgres", &dump) {
        assert!(begun.elapsed() < PATIENCE, "{error}");
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(desk.run(&["resume", "--as", "ann"]).code, Some(0));
    assert_eq!(paid(&desk.project), "9 to ann\n");

    let older = Desk::on(&server.url("owner", &format!("older_{name}")), &marks);
    let resumed = older.run(&["resume", "--as", "ann"]);
    assert_eq!(resumed.code, Some(4), "it waits for another decision: {resumed:?}");
    assert_eq!(paid(&older.project), "");
}

#[test]
fn doctor_tells_the_truth_about_the_database_and_a_call_is_refused_where_its_intent_can_vanish() {
    let Some(server) = PostgresServer::shared() else { return };
    let desk = Desk::on(&database(server).0, &database(server).0);
    let report = desk.json(&["doctor"]);
    let problem = |name: &str| {
        let findings = report["store"]["findings"].as_array().unwrap();
        let found = findings.iter().find(|found| found["name"] == name).unwrap();
        (!found["ok"].as_bool().unwrap()).then(|| found["problem"].as_str().unwrap().to_owned())
    };
    assert!(
        problem("fsync").unwrap().contains("set fsync = on"),
        "the server of the tests has none"
    );
    let fine = [
        "version",
        "full_page_writes",
        "synchronous_commit",
        "standbys",
        "role",
        "pooler",
        "rights",
        "clock",
    ];
    for name in fine {
        assert_eq!(problem(name), None, "{name}: {report}");
    }
    assert_eq!(desk.run(&["doctor"]).code, Some(1));

    let file = std::fs::read_to_string(desk.project.path().join("toolcrib.toml")).unwrap();
    desk.project.write("toolcrib.toml", &file.replace("accept_loss = true", ""));
    assert_eq!(desk.run(&["run", "Pay nine", "--as", "ann"]).code, Some(4));
    assert_eq!(desk.run(&["approve", &desk.waiting(), "--yes"]).code, Some(0));
    let refused = desk.run(&["resume", "--as", "ann"]);
    assert_eq!(refused.code, Some(0), "the refusal is the result of the call: {refused:?}");
    assert!(refused.stderr.contains("since `fsync` is off"), "{refused:?}");
    assert_eq!(paid(&desk.project), "");
}

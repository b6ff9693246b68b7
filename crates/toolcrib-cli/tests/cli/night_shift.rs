//! `examples/night-shift`: killed twice, approved once, resumed, and right in the end.

use std::{
    fs,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::Project;

/// The numbers of the closed accounts.
fn closed(night: &Project) -> Vec<u32> {
    let ledger = fs::read_to_string(night.path().join("ledger.csv")).unwrap_or_default();
    let numbers = ledger.lines().map(|line| line.split(',').next().unwrap().parse().unwrap());
    numbers.collect()
}

/// Kills a run with signal 9 once it has closed a number of accounts.
fn killed_after(night: &Project, mut run: Child, accounts: usize) {
    let began = Instant::now();
    while closed(night).len() < accounts {
        assert!(run.try_wait().unwrap().is_none(), "it ended after {:?}", closed(night));
        assert!(began.elapsed() < Duration::from_secs(300), "{:?}", closed(night));
        thread::sleep(Duration::from_millis(5));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    // Its lease would expire after some seconds.
    let store = rusqlite::Connection::open(night.state().join("sessions.db")).unwrap();
    store.busy_timeout(Duration::from_secs(10)).unwrap();
    store.execute("UPDATE sessions SET lease_until_ms = 0", []).unwrap();
}

fn begun(night: &Project, args: &[&str]) -> Child {
    let mut command = night.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_night_that_is_killed_twice_and_approved_once_ends_right() {
    let night = Project::copy_of("night-shift");
    killed_after(&night, begun(&night, &["run", "Close", "the", "day"]), 7);
    let waits = night.toolcrib(&["resume"]);
    assert_eq!(waits.code, Some(4), "{}{}", waits.stdout, waits.stderr);
    assert_eq!(closed(&night).len(), 19);
    assert!(!night.path().join("transfers.txt").exists());

    let (_, waiting) = night.json(&["approvals"]);
    let id =
        waiting["approvals"][0]["id"].as_str().unwrap_or_else(|| panic!("{waiting}")).to_owned();
    let approved = night.toolcrib(&["approve", &id, "--yes"]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    killed_after(&night, begun(&night, &["resume"]), 28);

    let (code, end) = night.json(&["resume"]);
    assert_eq!(code, Some(0), "{end}");
    assert_eq!(closed(&night), (1..40).collect::<Vec<_>>());
    let transfers = fs::read_to_string(night.path().join("transfers.txt")).unwrap();
    let sum: u32 = (1..20).map(|number| 100 + 3 * number).sum();
    assert_eq!(transfers, format!("{sum} to bank\n"));
    let answer = format!("39 accounts are closed, and {sum} euro went to the bank.");
    assert_eq!(end["answer"], answer);
    let (_, shown) = night.json(&["show", end["session"].as_str().unwrap()]);
    assert_eq!(shown["turns"].as_array().map(Vec::len), Some(1));
    let calls = shown["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 40);
    let is_ok = |call: &Value| call["outcome"] == "ok";
    assert!(calls.iter().all(is_ok), "{calls:?}");

    let replay = night.toolcrib(&["replay"]);
    assert_eq!(replay.code, Some(0), "{}{}", replay.stdout, replay.stderr);
    assert!(replay.stdout.contains("no difference"), "{}", replay.stdout);
    assert_eq!(closed(&night).len(), 39);
}

//! Replays of the examples.

use std::fs;

use serde_json::Value;

use crate::support::Project;

/// Runs an example, and asserts that its replay differs in nothing.
fn replayed(example: &str, message: &str) -> Project {
    let project = Project::copy_of(example);
    let run = |args: &[&str]| -> (Option<i32>, Value) {
        let mut command = project.command(args);
        let out = command.arg("--json").env("LOG_MEGABYTES", "1").output().unwrap();
        let json = serde_json::from_slice(&out.stdout);
        (
            out.status.code(),
            json.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&out.stderr))),
        )
    };
    let (code, made) = run(&["run", message]);
    assert_eq!(code, Some(0), "{example}: {made}");
    assert!(!made["tool_calls"].as_array().unwrap().is_empty(), "{example}");
    for sides in [&["replay"][..], &["replay", "--tools"]] {
        let (code, replay) = run(sides);
        assert_eq!(replay["difference"], Value::Null, "{example} {sides:?}: {replay:#}");
        assert_eq!(code, Some(0), "{example}");
    }
    project
}

/// The first difference of a replay with the journal's model.
fn difference(project: &Project) -> Value {
    let (code, replay) = project.json(&["replay", "--model"]);
    assert_eq!(code, Some(1), "{replay:#}");
    replay["difference"].clone()
}

#[test]
fn the_replay_of_own_database_finds_a_changed_row() {
    let project = replayed("own-database", "What did we sell in Porto?");
    assert_eq!(project.json(&["replay", "--model"]).0, Some(0));
    let shop = rusqlite::Connection::open(project.path().join("shop.db")).unwrap();
    shop.execute("UPDATE products SET name = 'Sledge hammer' WHERE name = 'Claw hammer'", [])
        .unwrap();
    let difference = difference(&project);
    assert_eq!(difference["part"], "result", "{difference}");
    assert!(difference["expected"].as_str().unwrap().contains("Claw hammer"), "{difference}");
    assert!(difference["actual"].as_str().unwrap().contains("Sledge hammer"), "{difference}");
}

#[test]
fn the_example_five_hundred_is_replayed() {
    replayed(
        "five-hundred",
        "Why did the nightly pipeline of shop/checkout fail? Open an issue, and tell the person on \
         call.",
    );
}

#[test]
fn code_fixer_repairs_both_programs_and_a_replay_repairs_nothing() {
    let project = replayed("code-fixer", "Repair both programs");
    let read = |file: &str| fs::read_to_string(project.path().join("app").join(file)).unwrap();
    assert!(read("rust/src/lib.rs").contains("(lower + upper) / 2.0"));
    assert!(read("python/words.py").contains(".lower()"));
    // Only tools that read run again, and the file that was read is repaired now.
    let difference = difference(&project);
    assert_eq!(difference["call"]["tool"], "read_file", "{difference}");
}

#[test]
fn the_example_log_detective_is_replayed() {
    replayed("log-detective", "Why did the job fail?");
}

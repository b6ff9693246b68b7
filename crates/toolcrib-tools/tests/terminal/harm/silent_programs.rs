//! Programs failed, and their results did not say why: the failure was in the part that is left out, or the
//! shell's error was lost, or a limit had no name.

use serde_json::json;
use toolcrib_core::ErrorCode;
use toolcrib_tools::{command::CommandToolSpec, terminal::Jobs};

use crate::Shell;

#[tokio::test]
async fn failures_beyond_the_memory_limit_are_shown_and_the_rest_is_counted() {
    let small = |mut spec: CommandToolSpec| {
        spec.max_output_bytes = 10_000;
        spec
    };
    let shell = Shell::with(small, &Jobs::new(2, Jobs::DEFAULT_TIME), true);
    let result = shell.run("seq 1 20000; echo 'error: boom'; seq 1 5000; false").await;
    assert!(result.text.starts_with("exit code 1\n1\n2\n"), "{}", result.text);
    assert!(result.text.contains("\n20001: error: boom\n"), "{}", result.text);
    assert!(result.text.ends_with("\n4999\n5000"), "{}", result.text);
    let lines: Vec<_> = result.text.lines().collect();
    let gap = lines.iter().position(|line| line.contains(" lines left out; ")).unwrap();
    let left_out: usize = lines[gap][1..].split(' ').next().unwrap().parse().unwrap();
    // Without the lines about the end and the gap.
    assert_eq!(left_out + lines.len() - 2, 25_001, "{}", lines[gap]);
    // More failures than are kept, and than have room.
    let result = shell.run("yes 'error: boom' | head -n 30000; printf 'error: end'; false").await;
    let lines: Vec<_> = result.text.lines().collect();
    let number = |end: &str| -> usize {
        let note = lines.iter().find(|line| line.contains(end)).unwrap();
        note[1..].split(' ').next().unwrap().parse().unwrap()
    };
    let shown = lines.iter().filter(|line| line.contains("error: ")).count();
    assert_eq!(shown + number(" more lines that report failures]"), 30_001);
    assert_eq!(shown + number(" lines left out; "), 30_001);
    // A line that is longer than what is kept, and one that is longer than the result.
    for shell in [shell, Shell::new()] {
        let result = shell.run("head -c 900000 /dev/zero | tr '\\0' x").await;
        let end = result.text.trim_start_matches('x');
        assert!(end.starts_with("\u{2026}\n[a part of a line is left out; "), "{end}");
    }
}

#[tokio::test]
async fn failures_of_a_job_are_shown_although_its_memory_is_full() {
    let shell = Shell::new();
    let command =
        "echo 'error: first'; seq 1 200000; yes 'error: boom' | head -n 600; seq 1 300000; false";
    shell.call("s", "start_job", json!({ "command": command })).await;
    let ended = shell.wait("job-1", None).await;
    assert!(ended.text.starts_with("job-1 ended with exit code 1; "), "{}", ended.text);
    assert!(ended.text.contains(" earlier bytes are gone; "), "{}", ended.text);
    assert!(ended.text.contains("\n1: error: first\n200002: error: boom\n"), "{}", ended.text);
    let more = ended.text.lines().find(|line| line.ends_with(" more lines that report failures]"));
    let more: usize = more.unwrap()[1..].split(' ').next().unwrap().parse().unwrap();
    let shown = ended.text.lines().filter(|line| line.contains(": error: ")).count();
    assert_eq!(shown + more, 601);
    // What was read before is not repeated.
    let later = shell.call("s", "read_job", json!({ "job": "job-1", "after": 13 })).await;
    assert!(!later.text.contains("error: first"), "{}", later.text);
    assert!(later.text.contains("\n200002: error: boom\n"), "{}", later.text);
    let last = shell.call("s", "read_job", json!({ "job": "job-1", "after": 3_000_000 })).await;
    assert!(!last.text.contains("error"), "{}", last.text);
}

#[tokio::test]
async fn a_shell_reports_what_it_cannot_parse() {
    let shell = Shell::new();
    for (command, why) in [
        ("echo 'abc", "nterminated quoted string"),
        ("if true; then echo x", "end of file"),
        ("echo $((1 +", "Missing '))'"),
        ("cd / && )", "\")\" unexpected"),
        ("-x", "not found"),
    ] {
        let result = shell.run(command).await;
        assert_eq!(result.code, Some(ErrorCode::ExecutionFailed), "{command}: {result:?}");
        assert!(result.text.contains(why), "{command}: {result:?}");
    }
    let job = shell.call("s", "start_job", json!({ "command": "echo 'abc" })).await;
    assert!(job.text.contains("nterminated quoted string"), "{job:?}");
    let bash = |mut spec: CommandToolSpec| {
        spec.program = "bash".to_owned();
        spec
    };
    let shell = Shell::with(bash, &Jobs::new(2, Jobs::DEFAULT_TIME), false);
    let result = shell.run("echo 'abc").await;
    assert!(result.text.contains("unexpected EOF while looking for matching"), "{result:?}");
}

#[tokio::test]
async fn the_limit_that_ended_a_program_is_named() {
    let limited = |mut spec: CommandToolSpec| {
        spec.limits.memory = Some(64 << 20);
        spec
    };
    let shell = Shell::with(limited, &Jobs::new(2, Jobs::DEFAULT_TIME), false);
    let command = "head -c 200000000 /dev/zero | tail -c 200000000";
    let says = "was ended by SIGKILL: it exceeded its limit on the memory of one process, 64 MiB \
                (`memory_max`)";
    let result = shell.run(command).await;
    assert!(result.text.contains(says), "{result:?}");
    shell.call("s", "start_job", json!({ "command": command })).await;
    let result = shell.wait("job-1", None).await;
    assert!(result.text.contains(says), "{result:?}");
    let result = shell.run("kill -ABRT $$").await;
    let says = "was ended by SIGABRT; if it needs more memory: `memory_max` is 64 MiB, \
                `total_memory_max` is 4096 MiB";
    assert!(result.text.contains(says), "{result:?}");
}

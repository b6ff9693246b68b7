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
    // Without the lines about the end, the gap and the failure.
    assert_eq!(left_out + lines.len() - 3, 25_001, "{}", lines[gap]);
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

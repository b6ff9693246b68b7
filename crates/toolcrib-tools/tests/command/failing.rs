//! Results of programs that fail, misbehave or are stopped.

use std::{path::Path, sync::Arc};

use serde_json::json;
use tokio::sync::mpsc;
use toolcrib_core::{
    CancellationToken, ErrorCode, Progress, ToolContextParts, ToolError, ToolOutput,
};
use toolcrib_tools::command::CommandToolSpec;

use crate::support::{call, call_in, sh, tool};

#[tokio::test]
async fn an_exit_code_comes_with_what_was_said_of_it() {
    let error =
        call(sh("echo out; echo the reason >&2; exit 3", &[]), json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ExecutionFailed);
    // Test runners write failures to stdout, beside warnings on stderr.
    let expected =
        "`sh` failed with exit code 3; it wrote to stderr:\nthe reason\nand to stdout:\nout";
    assert_eq!(error.message, expected);
    let cause = error.cause_chain().unwrap();
    assert!(cause.starts_with("/bin/sh with 3 arguments: exit code 3 after "), "{cause}");
    let error = call(sh("echo out; exit 4", &[]), json!({})).await.unwrap_err();
    assert_eq!(error.message, "`sh` failed with exit code 4; it wrote:\nout");
    let error = call(tool("false", &[], json!({})), json!({})).await.unwrap_err();
    assert_eq!(error.message, "`false` failed with exit code 1, without output");
    // Of much, the end.
    let script = "head -c 100000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 1";
    let error = call(sh(script, &[]), json!({})).await.unwrap_err();
    let shown = error.message.split_once('\n').unwrap().1;
    assert!(shown.starts_with("…xxx") && shown.ends_with("xthe end"), "{shown}");
    assert_eq!(shown.chars().count(), 2001);
}

#[tokio::test]
async fn a_signal_is_named() {
    let error = call(sh("kill -s SEGV $$", &[]), json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ExecutionFailed);
    assert_eq!(
        error.message,
        "`sh` was ended by SIGSEGV; if it needs more memory: `memory_max` is 1024 MiB, \
         `total_memory_max` is 4096 MiB, without output"
    );
    let error = call(sh("kill -s HUP $$", &[]), json!({})).await.unwrap_err();
    assert_eq!(error.message, "`sh` was ended by SIGHUP, without output");
}

#[tokio::test]
async fn a_program_over_its_memory_limit_fails() {
    let script = "x = bytearray(1 << 30); import time; time.sleep(1); print(len(x))";
    let mut spec = tool("/usr/bin/python3", &["-c", script], json!({}));
    let error = call(spec.clone(), json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ExecutionFailed);
    let says = "was ended by SIGKILL: it exceeded its limit on the memory of one process, 1024 MiB \
                (`memory_max`), without output";
    assert!(error.message.ends_with(says), "{}", error.message);
    spec.limits.memory = None;
    assert_eq!(call(spec, json!({})).await.unwrap().value, "1073741824");
}

#[tokio::test]
async fn a_daemonized_child_ends_with_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
import fcntl, os, sys, time
lock = open(sys.argv[1], 'w')
fcntl.flock(lock, fcntl.LOCK_EX)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        time.sleep(1000)
    os._exit(0)
os.wait()
print('left')
";
    let lock = folder.path().join("lock");
    let mut spec = tool("/usr/bin/python3", &["-c"], json!({}));
    spec.args.push(script.into());
    spec.args.push(lock.to_str().unwrap().into());
    assert_eq!(call(spec, json!({})).await.unwrap().value, "left");
    assert!(!is_held(&lock));
}

#[tokio::test]
async fn a_program_that_blocks_ends_with_the_call_and_says_what_it_had_said() {
    let script = "trap '' TERM; echo begun; echo oh >&2; while :; do sleep 1000; done";
    let spec = sh(script, &[]);
    let stopped = stopped_at_first_line(spec.clone()).await.unwrap_err();
    assert_eq!(stopped.code, ErrorCode::Cancelled);
    let text = &stopped.message;
    assert!(
        text.starts_with(
            "`sh` was stopped before it was done; until then it wrote to stdout:\nbegun"
        ),
        "{text}"
    );
    // A program that may have had its effect is not known to have had none.
    let mut writes = spec;
    writes.declaration.annotations.read_only = false;
    assert_eq!(stopped_at_first_line(writes).await.unwrap_err().code, ErrorCode::OutcomeUnknown);
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_program_along() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("lock");
    let script = "exec 9>\"$1\"; flock -n 9; trap '' TERM; (setsid sleep 1000 &); sleep 1000";
    let tool = sh(script, &["lock"]).build().unwrap();
    let call = tool.call(json!({ "lock": lock }), ToolContextParts::detached().into());
    let called = tokio::spawn(call);
    wait_until(&lock, true).await;
    called.abort();
    wait_until(&lock, false).await;
}

#[tokio::test]
async fn a_program_that_was_removed_is_not_available() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    std::fs::copy("/bin/true", &program).unwrap();
    let tool = tool(program.to_str().unwrap(), &[], json!({})).build().unwrap();
    std::fs::remove_file(&program).unwrap();
    let error = call_in(&tool, json!({}), ToolContextParts::detached().into()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NotAvailable);
    let path = program.to_str().unwrap();
    assert!(!error.message.contains(path), "where things lie is the operator's: {error:?}");
    assert!(error.cause_chain().unwrap().contains(path));
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_begins_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    let parts = ToolContextParts::detached();
    parts.cancellation.cancel();
    let tool = sh("echo > \"$1\"", &["made"]).build().unwrap();
    let error = call_in(&tool, json!({ "made": made }), parts.into()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Cancelled);
    assert!(!made.exists());
}

/// Cancels a call once it has told a line.
async fn stopped_at_first_line(spec: CommandToolSpec) -> Result<ToolOutput, ToolError> {
    let (sender, mut told) = mpsc::channel::<Progress>(64);
    let mut parts = ToolContextParts::detached();
    parts.progress = Some(Arc::new(move |progress| drop(sender.try_send(progress))));
    let cancellation = CancellationToken::new();
    parts.cancellation = cancellation.clone();
    let tool = spec.build().unwrap();
    let cancel = async {
        told.recv().await.unwrap();
        cancellation.cancel();
    };
    tokio::join!(call_in(&tool, json!({}), parts.into()), cancel).0
}

fn is_held(lock: &Path) -> bool {
    std::fs::File::open(lock).is_ok_and(|file| file.try_lock().is_err())
}

async fn wait_until(lock: &Path, held: bool) {
    let began = std::time::Instant::now();
    while is_held(lock) != held {
        assert!(began.elapsed().as_secs() < 300, "still held: {}", !held);
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

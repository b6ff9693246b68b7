//! A secret in the output of a job was shown in two parts, one of each read.

use std::fs;

use serde_json::json;
use toolcrib_core::ToolResult;
use toolcrib_engine::Redactor;
use toolcrib_tools::terminal::Jobs;

use crate::Shell;

const SECRET: &str = "hunter22-für-alle";

/// A shell whose engine knows the secret.
fn shell() -> Shell {
    let jobs = Jobs::new(2, Jobs::DEFAULT_TIME);
    let redactor = Redactor::new([SECRET.to_owned()]);
    Shell::of(|spec| spec, &jobs, |engine, _| engine.redactor(redactor))
}

/// Starts a job that writes two parts, the second once the file `go` exists.
async fn started(shell: &Shell, first: &[u8], second: &[u8]) -> ToolResult {
    let work = shell.dir.path().join("work");
    fs::write(work.join("first"), first).unwrap();
    fs::write(work.join("second"), second).unwrap();
    let command = "cat first; while [ ! -e go ]; do sleep 0.01; done; cat second";
    shell.call("s", "start_job", json!({ "command": command })).await;
    shell.wait("job-1", Some("begin")).await
}

async fn read(shell: &Shell, after: usize) -> ToolResult {
    shell.call("s", "read_job", json!({ "job": "job-1", "after": after })).await
}

/// The position that a result names.
fn position(result: &ToolResult) -> usize {
    let (_, rest) = result.text.split_once("output up to position ").unwrap();
    rest.split('\n').next().unwrap().parse().unwrap()
}

/// What a result shows of the output.
fn shown(result: &ToolResult) -> &str {
    result.text.split_once('\n').map_or("", |(_, shown)| shown)
}

#[tokio::test]
async fn a_secret_that_two_reads_split_is_in_neither() {
    // Also within a character.
    for at in [1, 7, 11, SECRET.len() - 1] {
        let shell = shell();
        let (first, second) = SECRET.as_bytes().split_at(at);
        let (first, second) = ([b"begin ", first].concat(), [second, b" end\n"].concat());
        let early = started(&shell, &first, &second).await;
        assert_eq!(shown(&early), "begin", "{at}: {early:?}");
        let held = read(&shell, position(&early)).await;
        assert_eq!(shown(&held), "", "{at}: {held:?}");
        fs::write(shell.dir.path().join("work/go"), "").unwrap();
        shell.wait("job-1", None).await;
        let late = read(&shell, position(&early)).await;
        assert_eq!(shown(&late), "[redacted] end", "{at}: {late:?}");
        // A model may name any position.
        for after in position(&early) + 1..position(&early) + SECRET.len() {
            let late = read(&shell, after).await;
            assert_eq!(shown(&late), "[redacted] end", "{at}, {after}: {late:?}");
        }
    }
}

#[tokio::test]
async fn a_beginning_of_a_secret_is_shown_once_its_end_differs() {
    let shell = shell();
    let early = started(&shell, b"begin hunter", b"s end\n").await;
    assert_eq!(shown(&early), "begin", "{early:?}");
    fs::write(shell.dir.path().join("work/go"), "").unwrap();
    shell.wait("job-1", None).await;
    let late = read(&shell, position(&early)).await;
    assert_eq!(shown(&late), "hunters end", "{late:?}");
}

#[tokio::test]
async fn a_wait_does_not_say_whether_a_secret_begins_with_a_text() {
    let shell = shell();
    started(&shell, format!("begin {SECRET} x").as_bytes(), b"end\n").await;
    let go = async {
        // By then, a wait for a text that is shown has ended.
        for _ in 0..20 {
            read(&shell, 0).await;
        }
        fs::write(shell.dir.path().join("work/go"), "").unwrap();
    };
    let (waited, ()) = tokio::join!(shell.wait("job-1", Some("hunter2")), go);
    assert!(waited.text.starts_with("job-1 ended "), "{waited:?}");
}

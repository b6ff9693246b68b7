//! Results of programs that succeed.

use std::{pin::pin, sync::Arc};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolcrib_core::{Audience, ToolContextParts};

use crate::support::{call, call_in, sh, tool};

async fn structured(script: &str) -> Value {
    call(sh(script, &[]), json!({})).await.unwrap().structured.unwrap()
}

#[tokio::test]
async fn text_and_data_have_the_same_output() {
    let output = call(sh("echo hello; echo; echo why >&2", &[]), json!({})).await.unwrap();
    assert_eq!(output.value, "hello");
    assert_eq!(
        output.structured.unwrap(),
        json!({ "exit_code": 0, "stdout": "hello\n\n", "stderr": "why\n", "truncated": false })
    );
    let silent = call(sh("echo only errors >&2", &[]), json!({})).await.unwrap();
    assert_eq!(silent.value, "only errors");
    assert_eq!(structured("true").await["stdout"], "");
}

#[tokio::test]
async fn declared_exit_codes_are_successes() {
    let mut spec = sh("echo none; exit 1", &[]);
    spec.ok_exit_codes = vec![0, 1];
    let output = call(spec.clone(), json!({})).await.unwrap();
    assert_eq!(
        (output.value.as_str(), &output.structured.unwrap()["exit_code"]),
        ("none", &json!(1))
    );
    spec.ok_exit_codes = vec![1];
    call(spec, json!({})).await.unwrap();
}

#[tokio::test]
async fn bytes_that_are_not_utf8_are_replaced_and_reported() {
    let output = call(sh("printf 'a\\377b\\n'", &[]), json!({})).await.unwrap();
    assert_eq!(output.value, "[bytes that are no UTF-8 are shown as \u{FFFD}]\na\u{FFFD}b");
    assert_eq!(output.structured.unwrap()["stdout"], "a\u{FFFD}b\n");
}

#[tokio::test]
async fn a_long_output_is_cut_between_characters_and_marked() {
    let mut spec = sh("printf 'aéé'; head -c 1073741824 /dev/zero", &[]);
    spec.max_output_bytes = 4;
    let output = call(spec, json!({})).await.unwrap();
    assert_eq!(output.value, "[the first 4 of 1073741829 bytes]\naé");
    let structured = output.structured.unwrap();
    assert_eq!((&structured["stdout"], &structured["truncated"]), (&json!("aé"), &json!(true)));
    let mut spec = sh("printf 'a\\377bc'", &[]);
    spec.max_output_bytes = 3;
    let output = call(spec, json!({})).await.unwrap();
    assert!(
        output.value.starts_with(
            "[the first 3 of 4 bytes; bytes that are no UTF-8 are shown as \u{FFFD}]\n"
        ),
        "{}",
        output.value
    );
}

#[tokio::test]
async fn the_person_who_waits_reads_the_lines_as_they_are_written() {
    let (sender, mut told) = mpsc::channel(64);
    let mut parts = ToolContextParts::detached();
    parts.progress = Some(Arc::new(move |progress| drop(sender.try_send(progress))));
    let script = "printf 'one\\ntw'; printf 'o\\n\\n'; echo not this >&2; \
                  head -c 20000 /dev/zero | tr '\\0' x; echo; printf '\\033[31mred\\n'";
    let script = format!("{script}; sleep 1000");
    let tool = sh(&script, &[]).build().unwrap();
    let mut running = pin!(call_in(&tool, json!({}), parts.into()));
    let mut lines = Vec::new();
    while lines.len() < 3 {
        tokio::select! {
            _ = &mut running => panic!("it ended"),
            progress = told.recv() => {
                let progress = progress.unwrap();
                assert_eq!((progress.audience, progress.percent), (Audience::User, None));
                lines.push(progress.message);
            }
        }
    }
    // The line of 20,000 characters is left out.
    assert_eq!(lines, ["one", "two", "[31mred"]);
}

#[tokio::test]
async fn progress_of_a_fast_output_has_its_newest_lines() {
    let (sender, mut told) = mpsc::channel(64);
    let mut parts = ToolContextParts::detached();
    parts.progress = Some(Arc::new(move |progress| drop(sender.try_send(progress))));
    let tool = sh("i=0; while [ $i -lt 9999 ]; do i=$((i+1)); echo $i; done; sleep 1000", &[]);
    let tool = tool.build().unwrap();
    let mut running = pin!(call_in(&tool, json!({}), parts.into()));
    let mut count = 0;
    loop {
        tokio::select! {
            _ = &mut running => panic!("it ended"),
            progress = told.recv() => {
                count += 1;
                if progress.unwrap().message == "9999" {
                    break;
                }
            }
        }
    }
    assert!(count < 1_000, "{count}");
}

#[tokio::test]
async fn a_program_finds_only_the_standard_files() {
    let output = call(tool("ls", &["/proc/self/fd"], json!({})), json!({})).await.unwrap();
    assert_eq!(output.value, "0\n1\n2\n3", "3 is the folder itself");
}

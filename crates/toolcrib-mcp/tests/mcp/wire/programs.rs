//! Servers that are programs: real processes.

use std::{path::Path, time::Duration};

use serde_json::Value;
use tokio::time::sleep;
use toolcrib_core::ErrorCode;
use toolcrib_mcp::{
    McpClient, McpError, mcp_client,
    server::{InvalidServerError, Stdio},
};

use super::call;
use crate::client::support::tool_of;

const SERVER: &str = include_str!("server.py");

fn client(mode: &str, marker: &str) -> McpClient {
    let program = Stdio::new("python3").args(["-c", SERVER, mode]);
    mcp_client("test", program.env("MARKER", marker)).build().unwrap()
}

/// Whether a process has the text in its environment or command line.
fn runs(marker: &str) -> bool {
    let Ok(processes) = Path::new("/proc").read_dir() else { return true };
    processes.flatten().any(|process| {
        ["cmdline", "environ"].iter().any(|file| {
            #[expect(clippy::disallowed_methods, reason = "a test looks at the system")]
            std::fs::read(process.path().join(file))
                .is_ok_and(|text| text.windows(marker.len()).any(|w| w == marker.as_bytes()))
        })
    })
}

async fn is_gone(marker: &str) -> bool {
    for _ in 0..6_000 {
        if !runs(marker) {
            return true;
        }
        sleep(Duration::from_millis(50)).await;
    }
    false
}

#[tokio::test]
async fn a_program_is_called_and_sees_only_its_own_environment() {
    let client = client("plain", "hello");
    // From two pages.
    let tools = client.tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name().as_str()).collect();
    assert_eq!(
        names,
        ["mcp__test__die", "mcp__test__env", "mcp__test__hang_up", "mcp__test__spawn"]
    );
    assert_eq!(client.status().server.as_deref(), Some("python"));
    let env = call(&tool_of(&client, "env").await).await.unwrap();
    let env: Value = serde_json::from_str(&env.value).unwrap();
    assert_eq!(env["MARKER"], "hello");
    // Set for every test that cargo runs.
    let of_the_host = "CARGO_MANIFEST_DIR";
    assert!(std::env::var_os(of_the_host).is_some());
    assert!(env.get(of_the_host).is_none(), "{env}");
    assert!(env.get("PATH").is_some(), "{env}");
    client.close().await;
}

#[tokio::test]
async fn a_crash_of_a_program_is_reported_with_its_code_and_its_last_words() {
    let client = client("plain", "");
    let lost = call(&tool_of(&client, "die").await).await.unwrap_err();
    let says = "it ended with exit code 3; the last it wrote to stderr: about to die";
    assert_eq!(lost.code, ErrorCode::OutcomeUnknown);
    assert!(lost.reason.ends_with(says), "{lost:?}");
    assert!(!lost.message.contains("about to die"), "{lost:?}");
}

#[tokio::test]
async fn a_program_that_ends_before_it_is_ready_is_reported() {
    // The reader notices the end of the one, the writer that of the other.
    for mode in ["refuse", "deaf"] {
        assert_eq!(
            client(mode, "").tools().await.unwrap_err().to_string(),
            "MCP server `test` cannot be reached: it was lost before it was ready: it ended with exit \
             code 2; the last it wrote to stderr: no key is set"
        );
    }
}

#[tokio::test]
async fn a_missing_program_is_reported() {
    let missing = mcp_client("test", Stdio::new("no-such-program")).build().unwrap();
    let error = missing.tools().await.unwrap_err().to_string();
    assert!(error.contains("no program `no-such-program`"), "{error}");
    let error = mcp_client("test", Stdio::new("")).build().unwrap_err();
    let expected = InvalidServerError::Command { server: "test".to_owned() };
    assert!(matches!(&error, McpError::Server(error) if *error == expected), "{error:?}");
}

#[tokio::test]
async fn nothing_is_left_of_a_program_that_ignores_its_end() {
    for ends_by_drop in [false, true] {
        let marker = format!("toolcrib-test-{}-{ends_by_drop}", std::process::id());
        let client = client("stubborn", &marker);
        let spawn = tool_of(&client, "spawn").await;
        assert_eq!(call(&spawn).await.unwrap().value, "spawned");
        if ends_by_drop {
            drop(client);
        } else {
            client.close().await;
        }
        assert!(is_gone(&marker).await);
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_program_whose_start_was_given_up() {
    let marker = format!("toolcrib-test-{}-given-up", std::process::id());
    let client = client("mute", &marker);
    let starts = async {
        while !runs(&marker) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        listed = client.tools() => panic!("it answers: {listed:?}"),
        () = starts => {}
    }
    drop(client);
    assert!(is_gone(&marker).await);
}

#[tokio::test]
async fn the_next_program_starts_after_the_end_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let client = client("locks", folder.path().join("lock").to_str().unwrap());
    // It closes its output, and lives on with its lock.
    let lost = call(&tool_of(&client, "hang_up").await).await.unwrap_err();
    assert_eq!(lost.code, ErrorCode::OutcomeUnknown);
    let mut status = client.status();
    while status.epoch < 2 {
        let error = status.last_error.as_deref().unwrap_or_default();
        assert!(!error.contains("another one runs"), "{error}");
        sleep(Duration::from_millis(20)).await;
        status = client.status();
    }
    client.close().await;
}

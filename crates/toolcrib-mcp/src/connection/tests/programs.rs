//! Servers that are programs: real processes.

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    super::{Connect, Connection, RequestError, stdio},
    call, call_with, unheard,
};
use crate::server::{InvalidServer, Stdio};

fn server(mode: &str) -> Arc<dyn Connect> {
    let program = Stdio::new("python3").args(["-c", include_str!("server.py"), mode]);
    stdio("test", &program.env("GREETING", "hello")).unwrap()
}

async fn connected(mode: &str) -> Arc<dyn Connection> {
    server(mode).connect(unheard()).await.unwrap()
}

async fn value(connection: &Arc<dyn Connection>, tool: &str) -> Value {
    let answer = connection.call_tool(call(tool)).await.unwrap();
    serde_json::from_str(&answer.output.value).unwrap()
}

/// Whether nothing runs in whose environment or command line the text stands.
async fn is_gone(marker: &str) -> bool {
    let runs = || {
        let Ok(processes) = Path::new("/proc").read_dir() else { return true };
        processes.flatten().any(|process| {
            ["cmdline", "environ"].iter().any(|file| {
                #[expect(clippy::disallowed_methods, reason = "a test looks at the system")]
                std::fs::read(process.path().join(file))
                    .is_ok_and(|text| text.windows(marker.len()).any(|w| w == marker.as_bytes()))
            })
        })
    };
    for _ in 0..600 {
        if !runs() {
            return true;
        }
        sleep(Duration::from_millis(50)).await;
    }
    false
}

#[tokio::test]
async fn a_program_is_talked_with_and_sees_only_its_own_environment() {
    let connection = connected("plain").await;
    assert_eq!(connection.server().name, "python");
    let page = connection.list_tools(None).await.unwrap();
    assert_eq!(page.next.as_deref(), Some("more"));
    assert_eq!(page.tools[0].name.as_deref(), Some("env"));
    let page = connection.list_tools(page.next).await.unwrap();
    assert_eq!((page.tools[0].name.as_deref(), page.next), (Some("die"), None));
    let env = value(&connection, "env").await;
    assert_eq!(env["GREETING"], "hello");
    // Set for every test that cargo runs.
    let of_the_host = "CARGO_MANIFEST_DIR";
    assert!(std::env::var_os(of_the_host).is_some());
    assert!(env.get(of_the_host).is_none(), "{env}");
    assert!(env.get("PATH").is_some(), "{env}");
    connection.close().await;
}

#[tokio::test]
async fn a_program_that_crashes_is_told_of_with_its_code_and_its_last_words() {
    let connection = connected("plain").await;
    let lost = connection.call_tool(call("die")).await.unwrap_err();
    let says = "it ended with exit code 3; the last it wrote to stderr: about to die";
    assert!(matches!(&lost, RequestError::Lost(reason) if reason == says), "{lost:?}");
    assert_eq!(&*connection.closed().await, says);
}

#[tokio::test]
async fn a_program_that_ends_before_it_is_ready_is_told_of() {
    let Err(error) = server("refuse").connect(unheard()).await else { panic!("connected") };
    assert_eq!(
        error.to_string(),
        "it was lost before it was ready: it ended with exit code 2; the last it wrote to \
         stderr: no key is set"
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_of() {
    let connect = stdio("test", &Stdio::new("no-such-program")).unwrap();
    let Err(error) = connect.connect(unheard()).await else { panic!("connected") };
    assert!(error.to_string().contains("no program `no-such-program`"), "{error}");
    let Err(error) = stdio("test", &Stdio::new("")) else { panic!("taken") };
    assert_eq!(error, InvalidServer::Command { server: "test".to_owned() });
}

#[tokio::test]
async fn nothing_is_left_of_a_program_that_ignores_its_end() {
    for ends_by_drop in [false, true] {
        let marker = format!("toolcrib-test-{}-{ends_by_drop}", std::process::id());
        let program = Stdio::new("python3").args(["-c", include_str!("server.py"), "stubborn"]);
        let connect = stdio("test", &program.env("MARKER", &*marker)).unwrap();
        let connection = connect.connect(unheard()).await.unwrap();
        let answer = connection.call_tool(call_with("spawn", json!({}))).await.unwrap();
        assert_eq!(answer.output.value, "spawned");
        if ends_by_drop {
            drop(connection);
        } else {
            connection.close().await;
        }
        assert!(is_gone(&marker).await);
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_program_whose_connecting_was_given_up() {
    let marker = format!("toolcrib-test-{}-given-up", std::process::id());
    let program = Stdio::new("python3").args(["-c", include_str!("server.py"), "mute"]);
    let connect = stdio("test", &program.env("MARKER", &*marker)).unwrap();
    let connecting = connect.connect(unheard());
    assert!(timeout(Duration::from_millis(500), connecting).await.is_err());
    assert!(is_gone(&marker).await);
}

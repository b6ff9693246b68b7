//! A secret in a program's environment, through an engine: it arrives, and nothing shows any part
//! of it, wherever an output is cut.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolcrib_core::{ToolCall, ToolResult};
use toolcrib_engine::{Engine, Redactor, TurnOptions};
use toolcrib_tools::command::CommandToolSpec;

use crate::support::{OneSecret, sh};

/// Of letters that no digest and no nonce contains.
const SECRET: &str = "SEKRIT-zqxjkvwy-ZQXJKVWYHG-pqrstuvwxyz-mlkjihg";

/// One call through an engine; its result, and all events as JSON.
async fn through_an_engine(secret: &'static str, spec: CommandToolSpec) -> (ToolResult, String) {
    let engine = Engine::builder()
        .redactor(Redactor::default())
        .secrets(OneSecret("KEY", secret))
        .tool(spec.build().unwrap())
        .build()
        .unwrap();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    engine.events().on("*", move |event| seen.lock().unwrap().push(json!(event))).unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let calls = vec![ToolCall::new("1", "run_it", json!({}))];
    let result = turn.iteration().await.unwrap().execute(calls).await.remove(0);
    let events = json!(*events.lock().unwrap()).to_string();
    (result, events)
}

fn with_secret(script: &str) -> CommandToolSpec {
    let mut spec = sh(script, &[]);
    spec.env.push(("KEY".to_owned(), "secret:KEY".to_owned()));
    spec
}

/// Whether four characters in a row of the secret are anywhere.
fn shows(secret: &str, text: &str) -> bool {
    let letters: Vec<char> = secret.chars().filter(|c| *c != '\n').collect();
    letters.windows(4).any(|part| text.contains(&part.iter().collect::<String>()))
}

#[tokio::test]
async fn a_secret_arrives_and_is_shown_nowhere() {
    let (result, events) = through_an_engine(SECRET, with_secret("echo \"[$KEY]\"")).await;
    assert_eq!(&*result.value, "[[redacted]]");
    let all = format!("{result:?} {events}");
    assert!(!shows(SECRET, &all), "{all}");
}

#[tokio::test]
async fn a_cut_leaves_no_piece_of_a_secret() {
    // At the cap of an output, wherever it falls.
    for cap in [8, 12, 20, 30, 45] {
        let mut spec = with_secret("echo \"begin $KEY end, $KEY\"; exit 0");
        spec.max_output_bytes = cap;
        let (result, events) = through_an_engine(SECRET, spec).await;
        assert!(result.is_ok());
        let all = format!("{result:?} {events}");
        assert!(!shows(SECRET, &all), "cap {cap}: {all}");
    }
    // In the end of stderr that an error shows, whether all of it was kept or only its tail.
    for padding in (1_900..2_000).step_by(7).chain([4_060, 4_070, 4_090, 10_000]) {
        let script = format!("printf '%s %0{padding}d' \"$KEY\" 0 >&2; exit 1");
        let mut spec = with_secret(&script);
        spec.max_output_bytes = 1_000;
        let (result, events) = through_an_engine(SECRET, spec).await;
        assert!(result.text.contains("stderr"), "{}", result.text);
        let all = format!("{result:?} {events}");
        assert!(!shows(SECRET, &all), "padding {padding}: {all}");
    }
}

#[tokio::test]
async fn a_secret_of_several_lines_is_shown_in_none() {
    const PEM: &str = "-----BEGIN-----\nline-one-of-the-key\nline-two-of-the-key\n";
    let (result, events) = through_an_engine(PEM, with_secret("echo \"$KEY\"; sleep 0.1")).await;
    let all = format!("{result:?} {events}");
    assert!(events.contains("tool.progress"), "{events}");
    assert!(!all.contains("line-one") && !all.contains("line-two"), "{all}");
}

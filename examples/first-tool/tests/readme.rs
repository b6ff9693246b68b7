//! The README's first program, unchanged, on a local server that speaks the vendor's protocol.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::{process::Command, sync::Arc};

use toolcrib::models::ScriptedModel;
use toolcrib_testbed::ModelServer;

const README: &str = include_str!("../../../README.md");

fn block(language: &str) -> &'static str {
    let (_, rest) = README.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_program_is_the_one_in_the_readme() {
    assert!(include_str!("../src/main.rs").ends_with(&format!("\n{}", block("rust,no_run"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_runs_unchanged_on_the_vendors_protocol() {
    let rules = r#"
        [[rule]]
        called = "find_order"
        text = "I looked: {{ results.find_order }}."
        [[rule]]
        calls = [{ tool = "find_order", args = { order = 1042 } }]
    "#;
    let model = ScriptedModel::from_toml("script.toml", rules).unwrap();
    let server = ModelServer::builder(Arc::new(model)).model_name("gpt-5-mini").start().await;
    let server = server.unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_example-first-tool"));
    program.env("OPENAI_BASE_URL", server.base_url()).env("OPENAI_API_KEY", "test-key");
    let output = tokio::task::spawn_blocking(move || program.output()).await.unwrap().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "I looked: order 1042 left the warehouse this morning.\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(server.recorder().len(), 2);
}

//! Texts of servers were cut before secrets were taken out of them, so that the first part of one stayed.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::ToolCall;
use toolcrib_engine::{Engine, Redactor, TurnOptions};
use toolcrib_mcp::mcp_client;

use super::bounded_work::server;

const SECRET: &str = "zq7wm2rt9kx4lp8vn3bc6yd1hs5";
/// What of it may be seen, since texts can end in its first letters by chance.
const PART: &str = "zq7w";

/// A text that ends in the midst of the secret wherever it is cut at 2,000 characters.
fn straddling(before: usize) -> String {
    format!("{}{SECRET} and more{}", "x".repeat(before), " more".repeat(100))
}

fn redactor() -> Redactor {
    Redactor::new([SECRET.to_owned()])
}

#[tokio::test]
async fn the_refusal_of_a_call_was_cut_within_a_secret() {
    for before in [1_975, 1_985, 1_995] {
        let client = mcp_client("s", server(&["fails", &straddling(before)])).build().unwrap();
        let engine = Engine::builder()
            .redactor(redactor())
            .provider(Arc::new(client.clone()))
            .build()
            .unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        let call = ToolCall::new("1", "mcp__s__charge", json!({}));
        let result = iteration.execute(vec![call]).await.remove(0);
        assert!(result.text.contains("xxx"), "{}", result.text);
        assert!(!result.text.contains(PART), "{before}: {}", result.text);
        client.close().await;
    }
}

#[tokio::test]
async fn the_state_of_a_server_was_cut_within_a_secret() {
    for before in [1_900, 1_975, 1_985, 1_995] {
        let client = mcp_client("s", server(&["unlisted", &straddling(before)]));
        let client = client.redactor(redactor()).build().unwrap();
        let error = client.tools().await.unwrap_err().to_string();
        assert!(error.contains("xxx") && error.len() < 3_000, "{error}");
        assert!(!error.contains(PART), "{before}: {error}");
        client.close().await;
    }
    // A program that writes what is no message, and ends with more on stderr than is shown.
    for (before, after) in [(185, 0), (195, 1_985), (0, 1_995)] {
        let script = format!(
            "import sys; print('y' * {before} + '{SECRET}' + ' z' * 300, flush=True); \
             sys.stdin.readline(); sys.stderr.write('{SECRET}' + 'e' * {after}); sys.exit(3)"
        );
        let program = toolcrib_mcp::server::Stdio::new("python3").arg("-c").arg(script);
        let client = mcp_client("s", program.allow_stray_children());
        let client = client.redactor(redactor()).build().unwrap();
        let error = client.tools().await.unwrap_err().to_string();
        assert!(!error.contains(PART) && !error.contains("hs5"), "{error}");
        client.close().await;
    }
}

//! One connection serves one request after the other.

use std::{iter, sync::Arc};

use serde_json::json;
use toolcrib_core::Message;
use toolcrib_models::{Vendor, VendorModel};
use toolcrib_testbed::{CannedServer, Reply};

use crate::support::{ask, request};

/// A whole answer, `count` texts long.
fn reply(vendor: Vendor, count: usize) -> Reply {
    let (reply, text, end) = match vendor {
        Vendor::OpenAi => (
            Reply::sse(),
            json!({ "choices": [{ "delta": { "content": "a" } }] }),
            json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }),
        ),
        Vendor::Anthropic => {
            let delta = json!({ "type": "text_delta", "text": "a" });
            (
                Reply::sse(),
                json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
                json!({ "type": "message_stop" }),
            )
        }
        Vendor::Gemini => (
            Reply::sse(),
            json!({ "candidates": [{ "content": { "parts": [{ "text": "a" }] } }] }),
            json!({ "candidates": [{ "finishReason": "STOP" }] }),
        ),
        _ => (
            Reply::ndjson(),
            json!({ "message": { "content": "a" } }),
            json!({ "done": true, "done_reason": "stop" }),
        ),
    };
    let events = iter::repeat_n(&text, count).chain([&end]).map(|event| match vendor {
        Vendor::Ollama => format!("{event}\n"),
        _ => format!("data: {event}\n\n"),
    });
    let last = (vendor == Vendor::OpenAi).then(|| "data: [DONE]\n\n".to_owned());
    events.chain(last).fold(reply, Reply::piece)
}

#[tokio::test]
async fn the_next_request_takes_the_connection_of_the_last() {
    for vendor in Vendor::ALL {
        let counts = 1..=8;
        let server = CannedServer::start(counts.clone().map(move |count| reply(vendor, count)));
        let server = server.await.unwrap();
        let model = VendorModel::builder(vendor, "m").base_url(server.url()).build().unwrap();
        let model = Arc::new(model);
        for count in counts {
            let heard = ask(&model, request(vec![Message::user("Say it.")], Vec::new())).await;
            assert_eq!(heard.outcome.unwrap().text, "a".repeat(count), "{vendor}");
        }
        assert_eq!(server.connections(), 1, "{vendor}");
    }
}

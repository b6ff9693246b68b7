//! Answers in which each fragment made work that grew with all that had come before.

use serde_json::json;
use toolcrib_core::ModelErrorClass;
use toolcrib_models::Vendor;
use toolcrib_testbed::CannedServer;

use crate::faults::{hear, model, wire};

#[tokio::test]
async fn calls_without_number_were_looked_through_for_each_fragment() {
    for vendor in [Vendor::OpenAi, Vendor::Anthropic] {
        let frames: String = (0..20_000)
            .map(|at| match vendor {
                Vendor::Anthropic => {
                    let block = json!({"type": "tool_use", "id": format!("c{at}"), "name": "t", "input": {}});
                    let begins = json!({"type": "content_block_start", "index": at, "content_block": block});
                    wire::frame(vendor, &begins)
                }
                _ => {
                    let function = json!({"name": "t", "arguments": "{}"});
                    let call = json!({"index": at, "id": format!("c{at}"), "function": function});
                    let delta = json!({"tool_calls": [call]});
                    wire::frame(vendor, &json!({"choices": [{"index": 0, "delta": delta}]}))
                }
            })
            .collect();
        let reply = wire::reply(vendor).piece(wire::beginning(vendor).concat()).piece(frames);
        let server = CannedServer::start([reply]).await.unwrap();
        let error = hear(&model(&server, vendor)).await.outcome.unwrap_err();
        assert_eq!(error.class, ModelErrorClass::Protocol, "{vendor}: {error}");
        assert!(error.to_string().contains("calls and other parts"), "{vendor}: {error}");
    }
}

#[tokio::test]
async fn long_arguments_were_parsed_again_for_each_fragment_that_says_the_name() {
    // Each fragment may begin another call, as long as the arguments so far are a whole object.
    let piece = "{".repeat(100);
    let vendor = Vendor::OpenAi;
    let of = |arguments: &str| {
        let call = json!({"function": {"name": "t", "arguments": arguments}});
        wire::frame(vendor, &json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))
    };
    let frames = of("{\"a\":\"") + &of(&piece).repeat(20_000);
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let end = wire::frame(vendor, &end) + "data: [DONE]\n\n";
    let server = CannedServer::start([wire::reply(vendor).piece(frames).piece(end)]).await.unwrap();
    let answer = hear(&model(&server, vendor)).await.outcome.unwrap();
    assert_eq!(answer.calls.len(), 1);
}

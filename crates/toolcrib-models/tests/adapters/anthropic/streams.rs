//! Reading streams.

use serde_json::{Value, json};
use toolcrib_core::{StopReason, ToolCall};

use super::{answered, call, event, hello, model, rich, started, stream, text};
use crate::support::{ReceivedAnswer, Reply, Server, ask, check_cut};

fn check_rich(heard: &ReceivedAnswer, place: usize) {
    let response = heard.outcome.as_ref().unwrap_or_else(|error| panic!("at {place}: {error}"));
    assert_eq!(heard.text, "Ich schaue nach 👀.", "at {place}");
    assert_eq!(heard.reasoning, "First the order; größer.", "at {place}");
    assert_eq!(response.text, heard.text);
    assert_eq!(
        response.calls,
        [
            ToolCall::unparsed("toolu_1", "find_order", "{\"id\": 1042}"),
            ToolCall::unparsed("toolu_2", "find_order", "{}"),
        ]
    );
    assert_eq!(response.stop, StopReason::Finished);
    let usage = response.usage;
    assert_eq!(
        (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens),
        (127, 100, 31)
    );
    let blocks = &response.vendor.as_ref().unwrap().content["blocks"];
    assert_eq!(blocks.as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn a_stream_is_the_same_wherever_the_network_cuts_it() {
    let stream = rich();
    let replies: Vec<_> =
        (0..=stream.len()).map(|position| Reply::events(&stream).cut_at(position)).collect();
    let server = Server::start(replies).await;
    let model = model(&server, |builder| builder);
    for position in 0..=stream.len() {
        check_rich(&ask(&model, hello()).await, position);
    }
    let crlf = Server::start([Reply::events(stream.replace('\n', "\r\n"))]).await;
    check_rich(&ask(&super::model(&crlf, |builder| builder), hello()).await, 0);
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_no_answer() {
    let stream = rich();
    // After the stop reason nothing can be missing.
    let whole = stream.find("event: message_stop").unwrap();
    let replies: Vec<_> =
        (0..whole).map(|length| Reply::events(&stream.as_bytes()[..length])).collect();
    let server = Server::start(replies).await;
    let model = model(&server, |builder| builder);
    let mut has_begun = false;
    for length in 0..whole {
        let heard = ask(&model, hello()).await;
        has_begun |= !(heard.text.is_empty() && heard.reasoning.is_empty());
        let error = heard.outcome.expect_err("cut off");
        check_cut(&error, &mut has_begun);
        assert!("Ich schaue nach 👀.".starts_with(&heard.text), "at {length}");
    }
    check_rich(&super::heard(&stream[..whole]).await, whole);
}

#[tokio::test]
async fn unusual_streams_are_read() {
    let delta = |index: Value, delta: Value| {
        event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
    };
    let begins = |index: Value, block: Value| {
        event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
    };
    let said = |text: &str| json!({ "type": "text_delta", "text": text });
    let wrote = |text: &str| json!({ "type": "input_json_delta", "partial_json": text });
    let tool_use = |id: &str, input: Value| json!({ "type": "tool_use", "id": id, "name": "find_order", "input": input });
    let made_up = event(&json!({ "type": "made_up", "anything": { "at": ["all"] } }));
    let cases = [
        (
            vec![
                ": keep-alive\n\n".to_owned(),
                "data:\n\n".to_owned(),
                made_up,
                "event: ping\ndata: {}\n\n".to_owned(),
                begins(json!(0), json!({ "type": "text", "text": "Hi", "citations": null })),
                delta(json!(0), said("")),
                delta(json!(0), json!({ "type": "made_up_delta", "text": "?", "x": [1] })),
                delta(json!(0), json!({ "type": "citations_delta", "citation": {} })),
                delta(json!(0), said(" there.")),
            ],
            "Hi there.",
            vec![],
        ),
        // Without numbers, a piece belongs to the block that began last.
        (
            vec![
                begins(json!(null), json!({ "type": "text", "text": "" })),
                delta(json!(null), said("A")),
                begins(json!(null), tool_use("toolu_1", json!({}))),
                delta(json!(null), wrote("{\"id\":")),
                delta(json!(null), wrote("1}")),
            ],
            "A",
            vec![("toolu_1", "{\"id\":1}")],
        ),
        // One number for all.
        (
            vec![
                begins(json!(0), tool_use("toolu_1", json!({}))),
                delta(json!(0), wrote("{\"id\":1}")),
                begins(json!(0), tool_use("toolu_2", json!({}))),
                delta(json!(0), wrote("{\"id\":2}")),
            ],
            "",
            vec![("toolu_1", "{\"id\":1}"), ("toolu_2", "{\"id\":2}")],
        ),
        // A piece without a beginning; the largest number; the whole arguments at once.
        (
            vec![
                delta(json!(5), said("A")),
                delta(json!(9), wrote("{")),
                begins(json!(u64::MAX), tool_use("toolu_1", json!({ "id": 1 }))),
                begins(json!(null), tool_use("toolu_2", json!(null))),
                begins(json!(3), json!({ "type": "server_tool_use", "id": "x", "input": {} })),
                delta(json!(3), wrote("{\"x\":1}")),
            ],
            "A",
            vec![("toolu_1", "{\"id\":1}"), ("toolu_2", "{}")],
        ),
    ];
    for (events, text, calls) in cases {
        let response = answered(&stream(&events, "end_turn")).await;
        assert_eq!(response.text, text);
        let expected: Vec<_> = calls
            .into_iter()
            .map(|(id, arguments)| ToolCall::unparsed(id, "find_order", arguments))
            .collect();
        assert_eq!(response.calls, expected);
        assert_eq!(response.vendor, None);
    }
}

#[tokio::test]
async fn later_token_counts_replace_earlier_ones() {
    let late = event(&json!({
        "type": "message_delta", "delta": { "stop_reason": "end_turn" },
        "usage": { "output_tokens": 9, "input_tokens": 50, "cache_read_input_tokens": null },
    }));
    let end = event(&json!({ "type": "message_stop" }));
    let usage = answered(&format!("{}{late}{end}", started())).await.usage;
    assert_eq!((usage.input_tokens, usage.cached_input_tokens, usage.output_tokens), (170, 100, 9));
}

#[tokio::test]
async fn the_stop_reason_is_read() {
    let cases = [
        ("end_turn", StopReason::Finished),
        ("tool_use", StopReason::Finished),
        ("max_tokens", StopReason::MaxTokens),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("pause_turn", StopReason::Other),
        ("made_up", StopReason::Other),
    ];
    for (reason, expected) in cases {
        let response = answered(&stream(&[text(0, "A")], reason)).await;
        assert_eq!(response.stop, expected, "{reason}");
    }
    // A truncated part is passed on unchanged.
    let response = answered(&stream(&[call(0, "toolu_1", &["{\"id\": 1"])], "max_tokens")).await;
    assert_eq!(response.calls, [ToolCall::unparsed("toolu_1", "find_order", "{\"id\": 1")]);
    // Without a reason.
    let end = event(&json!({ "type": "message_stop" }));
    let response = answered(&format!("{}{}{end}", started(), text(0, "A"))).await;
    assert_eq!((response.text.as_str(), response.stop), ("A", StopReason::Other));
}

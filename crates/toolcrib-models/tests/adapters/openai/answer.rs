//! Reading responses.

use super::*;
use crate::support::check_cut;

#[tokio::test]
async fn a_stream_is_the_same_answer_wherever_it_is_cut() {
    let stream = rich().replace("\n\n", "\r\n\r\n");
    let replies: Vec<_> =
        (0..=stream.len()).map(|position| Reply::events(&stream).cut_at(position)).collect();
    let server = Server::start(replies).await;
    let model = Arc::new(model(&server, "test-model").build().unwrap());
    for position in 0..=stream.len() {
        let heard = ask(&model, hello()).await;
        assert_eq!(heard.outcome.unwrap(), rich_response(&server), "cut at {position}");
        assert_eq!(heard.text, "Ich schaue nach 👀.");
        assert_eq!(heard.reasoning, "First the order; größer.");
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_an_answer_only_if_the_reason_to_stop_has_come() {
    let stream = rich();
    let whole = stream.find("\"finish_reason\":\"tool_calls\"").unwrap();
    let whole = whole + stream[whole..].find("\n\n").unwrap() + 2;
    let positions: Vec<_> = (0..stream.len()).filter(|at| stream.is_char_boundary(*at)).collect();
    let replies: Vec<_> = positions.iter().map(|at| Reply::events(&stream[..*at])).collect();
    let server = Server::start(replies).await;
    let model = Arc::new(model(&server, "test-model").build().unwrap());
    let mut has_begun = false;
    for position in positions {
        let heard = ask(&model, hello()).await;
        has_begun |= !(heard.text.is_empty() && heard.reasoning.is_empty());
        match heard.outcome {
            Ok(response) => {
                assert!(position >= whole, "cut at {position}");
                assert_eq!(response.calls, rich_response(&server).calls);
                assert_eq!(response.stop, StopReason::Finished);
            }
            Err(error) => {
                assert!(position < whole, "cut at {position}: {error}");
                check_cut(&error, &mut has_begun);
            }
        }
    }
}

#[tokio::test]
async fn answers_are_understood_however_servers_say_them() {
    let plain = |deltas: &[String]| stream(deltas, "stop");
    // (stream, text, reasoning)
    let cases = [
        // Comments, other events, unknown fields and choices, nothing at all.
        (
            format!(
                ": keep-alive\n\nevent: ping\ndata: {{\"type\":\"ping\"}}\n\ndata:\n\n{}{}{}{}{}{}{}{}",
                event(&json!([])),
                event(&json!(null)),
                event(&json!({ "choices": null, "error": null })),
                event(&json!({ "choices": [], "prompt_filter_results": [{}] })),
                choice(&json!({ "index": 1, "delta": { "content": "other" } })),
                choice(&json!({ "delta": { "content": "Hi", "made_up": [1] }, "made_up": 1 })),
                choice(&json!({ "delta": null })),
                plain(&[
                    text(""),
                    delta(&json!({ "content": null, "tool_calls": null })),
                    text("!")
                ]),
            ),
            "Hi!",
            "",
        ),
        (
            plain(&[
                delta(&json!({ "reasoning": "a" })),
                delta(&json!({ "reasoning": "b" })),
                text("c"),
            ]),
            "c",
            "ab",
        ),
        // The same under two names.
        (
            plain(&[delta(&json!({ "reasoning": "a", "reasoning_content": "a" })), text("c")]),
            "c",
            "a",
        ),
        // Mistral's.
        (
            plain(&[
                delta(
                    &json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "a" }] }] }),
                ),
                delta(
                    &json!({ "content": [{ "type": "text", "text": "c" }, { "type": "reference" }] }),
                ),
            ]),
            "c",
            "a",
        ),
        // The last chunk is a message.
        (
            format!(
                "{}{DONE}",
                choice(
                    &json!({ "index": 0, "message": { "content": "c" }, "finish_reason": "stop" })
                )
            ),
            "c",
            "",
        ),
        (format!("{}{}data: [DONE]", text("c"), stopped("stop")), "c", ""),
        (format!("{}{}", text("c"), stopped("stop")), "c", ""),
        (plain(&[]), "", ""),
    ];
    for (stream, text, reasoning) in cases {
        let heard = heard(&stream).await;
        let response = heard.outcome.unwrap_or_else(|error| panic!("{error}: {stream}"));
        assert_eq!((&*response.text, &*heard.reasoning), (text, reasoning), "{stream}");
        assert_eq!(response.stop, StopReason::Finished, "{stream}");
    }
}

#[tokio::test]
async fn what_a_server_may_want_back_is_kept() {
    let call = |extra: Value| {
        calls(&json!([{ "id": extra["id"], "function": { "name": "find_order", "arguments": "{}" },
            "extra_content": extra["extra"] }]))
    };
    let detail = |detail: Value| delta(&json!({ "reasoning_details": [detail] }));
    let cases = [
        (vec![text("Hi.")], None),
        (vec![call(json!({ "id": "a", "extra": null }))], None),
        (
            vec![delta(&json!({ "reasoning": "a" })), delta(&json!({ "reasoning": "b" }))],
            Some(json!({ "reasoning": "ab", "calls": [] })),
        ),
        (
            vec![
                call(json!({ "id": "a" })),
                call(json!({ "id": "b", "extra": { "s": 1 } })),
                call(json!({ "id": "c" })),
            ],
            Some(json!({ "calls": [null, { "s": 1 }, null] })),
        ),
        (
            vec![
                detail(json!({ "type": "reasoning.text", "index": 0, "text": "a", "format": "f" })),
                detail(
                    json!({ "type": "reasoning.text", "index": 0, "text": "b", "signature": null }),
                ),
                detail(json!({ "type": "reasoning.text", "index": 0, "signature": "s" })),
                detail(json!({ "type": "reasoning.encrypted", "index": 0, "data": "x" })),
                detail(json!({ "type": "reasoning.encrypted", "data": "y" })),
                detail(json!({ "type": "reasoning.encrypted", "data": "z" })),
            ],
            Some(json!({ "reasoning_details": [
                { "type": "reasoning.text", "index": 0, "text": "ab", "format": "f", "signature": "s" },
                { "type": "reasoning.encrypted", "index": 0, "data": "x" },
                { "type": "reasoning.encrypted", "data": "y" },
                { "type": "reasoning.encrypted", "data": "z" },
            ], "calls": [] })),
        ),
    ];
    for (deltas, expected) in cases {
        let server = Server::start([Reply::events(stream(&deltas, "stop"))]).await;
        let model = Arc::new(model(&server, "test-model").build().unwrap());
        let kept = ask(&model, hello()).await.outcome.unwrap().vendor;
        let kept = kept.map(|kept| (kept.vendor.to_string(), kept.content.clone()));
        let expected = expected.map(|mut content| {
            content["server"] = base_url(&server).into();
            content["model"] = "test-model".into();
            ("openai".to_owned(), content)
        });
        assert_eq!(kept, expected);
    }
}

#[tokio::test]
async fn tokens_are_counted_however_servers_report_them() {
    let details = |cached: u64| json!({ "cached_tokens": cached });
    // (usage, read, of it cached, written)
    let cases = [
        (
            json!({ "prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12,
            "prompt_tokens_details": details(4) }),
            (9, 4, 3),
        ),
        (
            json!({ "prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12,
            "prompt_tokens_details": null }),
            (9, 0, 3),
        ),
        (
            json!({ "prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 8 }),
            (9, 8, 3),
        ),
        (json!({ "prompt_tokens": 9, "completion_tokens": 3, "cached_tokens": 7 }), (9, 7, 3)),
        // Reasoning that only the total counts.
        (json!({ "prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 112 }), (9, 0, 103)),
        (json!({ "prompt_tokens": null, "completion_tokens": "3" }), (0, 0, 0)),
        (json!(null), (0, 0, 0)),
    ];
    for (used, expected) in cases {
        let last = format!("{}{}{}{DONE}", text("Hi."), stopped("stop"), usage(&used));
        let with_the_reason = format!(
            "{}{}{DONE}",
            text("Hi."),
            event(&json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }], "usage": used })),
        );
        for stream in [last, with_the_reason] {
            let usage = answered(&stream).await.usage;
            let found = (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens);
            assert_eq!(found, expected, "{used}");
        }
    }
}

#[tokio::test]
async fn the_stop_reason_is_read() {
    let cases = [
        ("stop", Ok(StopReason::Finished)),
        ("tool_calls", Ok(StopReason::Finished)),
        ("length", Ok(StopReason::MaxTokens)),
        ("model_length", Ok(StopReason::MaxTokens)),
        ("something_new", Ok(StopReason::Other)),
        ("content_filter", Err(ModelErrorClass::ContentFilter)),
        ("insufficient_system_resource", Err(ModelErrorClass::Overloaded)),
        ("error", Err(ModelErrorClass::Incomplete)),
    ];
    for (reason, expected) in cases {
        let heard = heard(&stream(&[text("Hi.")], reason)).await;
        assert_eq!(heard.text, "Hi.");
        assert_eq!(heard.outcome.map(|r| r.stop).map_err(|e| e.class), expected, "{reason}");
    }
    // It reports the end without a reason.
    assert_eq!(answered(&format!("{}{DONE}", text("Hi."))).await.stop, StopReason::Other);
    // Calls may come with any reason.
    let call =
        calls(&json!([{ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{}" } }]));
    assert_eq!(answered(&stream(&[call], "stop")).await.calls.len(), 1);
}

#[tokio::test]
async fn a_model_that_declines_is_a_content_filter() {
    let words = ["I can't ", "help with that."].map(|words| delta(&json!({ "refusal": words })));
    let whole = stream(&words, "stop");
    for stream in [whole, format!("{}{DONE}", words.concat())] {
        let error = heard(&stream).await.outcome.unwrap_err();
        assert_eq!(error.class, ModelErrorClass::ContentFilter);
        assert!(error.message.contains("I can't help with that."), "{}", error.message);
    }
}

//! Reading responses.

use super::*;
use crate::support::check_cut;

#[tokio::test]
async fn a_stream_is_the_same_answer_wherever_it_is_cut() {
    let stream = rich().replace('\n', "\r\n");
    // Within each event, and within characters and ends of lines.
    let positions: Vec<_> = (0..=stream.len()).step_by(5).collect();
    let cut = |at: &usize| Reply::events(&stream).cut_at(*at);
    let server = Server::start(positions.iter().map(cut).collect::<Vec<_>>()).await;
    let model = Arc::new(model(&server, "test-model").build().unwrap());
    for position in positions {
        let heard = ask(&model, hello()).await;
        assert_eq!(heard.outcome.unwrap(), rich_response(&server), "cut at {position}");
        assert_eq!(heard.text, "Ich schaue nach 👀.");
        assert_eq!(heard.reasoning, RICH_REASONING);
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_no_answer() {
    let stream = rich();
    let positions: Vec<_> = (0..stream.len()).step_by(11).collect();
    let replies: Vec<_> =
        positions.iter().map(|at| Reply::events(&stream.as_bytes()[..*at])).collect();
    let server = Server::start(replies).await;
    let model = Arc::new(model(&server, "test-model").build().unwrap());
    let mut has_begun = false;
    for _ in positions {
        let heard = ask(&model, hello()).await;
        has_begun |= !(heard.text.is_empty() && heard.reasoning.is_empty());
        check_cut(&heard.outcome.unwrap_err(), &mut has_begun);
    }
}

#[tokio::test]
async fn events_that_are_not_known_are_passed_over() {
    let delta = json!({ "output_index": 0, "delta": "no text", "text": "nor this", "made_up": 1 });
    let odd = [
        ": keep-alive\n\ndata:\n\n".to_owned(),
        event("ping", json!({})),
        event("response.queued", json!({ "response": {} })),
        event("response.output_text.annotation.added", json!({ "annotation": {} })),
        event("response.audio.delta", delta.clone()),
        event("response.mcp_call_arguments.delta", delta.clone()),
        event("response.steer.pending", json!({ "delta": { "an": "object" } })),
        added(7, &json!({ "type": "web_search_call", "id": "ws_7", "action": {} })),
        added(8, &Value::Null),
        event(
            "response.content_part.added",
            json!({ "output_index": 0, "part": { "type": "odd" } }),
        ),
        "data: {\"made_up\": true}\n\n".to_owned(),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let stream = format!("{}{odd}{}", created(), saying("Hi."));
    let heard = heard(&stream).await;
    assert_eq!((&*heard.text, &*heard.reasoning), ("Hi.", ""));
    let response = heard.outcome.unwrap();
    assert_eq!((response.calls.len(), response.vendor), (0, None));
}

#[tokio::test]
async fn tokens_are_counted() {
    let cases = [
        (usage(), (120, 100, 31)),
        (json!({ "input_tokens": 9, "output_tokens": 3 }), (9, 0, 3)),
        (
            json!({ "input_tokens": 9, "input_tokens_details": null, "output_tokens": null }),
            (9, 0, 0),
        ),
        (json!(null), (0, 0, 0)),
    ];
    for (used, expected) in cases {
        let response = json!({ "output": [message("msg_0", "Hi.")], "usage": used });
        let usage =
            answered(&event("response.completed", json!({ "response": response }))).await.usage;
        let found = (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens);
        assert_eq!(found, expected, "{used}");
    }
}

#[tokio::test]
async fn the_stop_reason_is_read() {
    let cases = [
        ("completed", json!(null), Ok(StopReason::Finished)),
        ("incomplete", json!({ "reason": "max_output_tokens" }), Ok(StopReason::MaxTokens)),
        ("incomplete", json!({ "reason": "something_new" }), Ok(StopReason::MaxTokens)),
        ("incomplete", json!(null), Ok(StopReason::MaxTokens)),
        ("incomplete", json!({ "reason": "content_filter" }), Err(ModelErrorClass::ContentFilter)),
    ];
    for (status, details, expected) in cases {
        let output = [thought("rs_0"), call("fc_1", "call_1", "{\"id\": 10")];
        let response = json!({ "incomplete_details": details, "output": output, "usage": usage() });
        let end = event(&format!("response.{status}"), json!({ "response": response }));
        let outcome = heard(&format!("{}{end}", created())).await.outcome;
        if let Ok(response) = &outcome {
            let is_whole = response.stop == StopReason::Finished;
            assert_eq!(
                response.vendor.is_some(),
                is_whole,
                "{details}: items that were cut do not go back"
            );
            // The caller's loop refuses the call.
            assert_eq!(said(response), json!([["call_1", "find_order", "{\"id\": 10"]]));
            assert_eq!(response.usage.output_tokens, 31);
        }
        assert_eq!(outcome.map(|r| r.stop).map_err(|e| e.class), expected, "{details}");
    }
}

#[tokio::test]
async fn a_model_that_declines_is_a_content_filter() {
    let words = |kind: &str, fields: Value| {
        let Value::Object(mut fields) = fields else { panic!("fields") };
        fields.insert("output_index".to_owned(), json!(0));
        event(&format!("response.refusal.{kind}"), Value::Object(fields))
    };
    let item = json!({ "type": "message", "id": "msg_0", "content": [
        { "type": "refusal", "refusal": "I can't help with that." },
    ]});
    let pieces = words("delta", json!({ "delta": "I can't " }))
        + &words("delta", json!({ "delta": "help with that." }))
        + &words("done", json!({ "refusal": "I can't help with that." }));
    let streams = [
        format!("{pieces}{}", completed(&json!([item]))),
        format!("{}{}", done(0, &item), completed(&json!([]))),
        completed(&json!([item])),
    ];
    for stream in streams {
        let error = heard(&stream).await.outcome.unwrap_err();
        assert_eq!(error.class, ModelErrorClass::ContentFilter);
        assert_eq!(
            error.message.matches("I can't help with that.").count(),
            1,
            "{}",
            error.message
        );
    }
}

#[tokio::test]
async fn an_error_in_the_stream_is_of_its_class() {
    use ModelErrorClass::{
        BadRequest, ContentFilter, ContextOverflow, Incomplete, Overloaded, Quota, RateLimit,
        Server,
    };
    let failed = |error: Value| event("response.failed", json!({ "response": { "error": error } }));
    let coded = |code: &str| failed(json!({ "code": code, "message": "So it is." }));
    let cases = [
        (coded("server_error"), Server),
        (coded("rate_limit_exceeded"), RateLimit),
        (coded("context_length_exceeded"), ContextOverflow),
        (coded("insufficient_quota"), Quota),
        (coded("server_is_overloaded"), Overloaded),
        (coded("invalid_prompt"), ContentFilter),
        (coded("bio_policy"), ContentFilter),
        (coded("image_parse_error"), BadRequest),
        (coded("something_new"), Incomplete),
        (failed(json!(null)), Incomplete),
        (
            event(
                "error",
                json!({ "code": "server_error", "message": "So it is.", "param": null }),
            ),
            Server,
        ),
        (
            event("error", json!({ "error": { "type": "server_error", "message": "So it is." } })),
            Server,
        ),
        (
            event(
                "error",
                json!({ "error": { "type": "invalid_request_error", "message": "So it is." } }),
            ),
            BadRequest,
        ),
        ("event: error\ndata: So it is.\n\n".to_owned(), Incomplete),
        (
            "data: {\"error\": {\"code\": 503, \"message\": \"So it is.\"}}\n\n".to_owned(),
            Overloaded,
        ),
    ];
    for (end, class) in cases {
        let heard = heard(&format!("{}{}{end}", created(), text(0, "Hi"))).await;
        assert_eq!(heard.text, "Hi");
        let error = heard.outcome.unwrap_err();
        assert_eq!(error.class, class, "{end}");
        assert!(error.message.contains("So it is.") || end.contains("null}"), "{}", error.message);
    }
    let wait = coded("rate_limit_exceeded").replace("So it is.", "Please try again in 1.5s.");
    let error = heard(&wait).await.outcome.unwrap_err();
    assert_eq!(error.retry_after, Some(Duration::from_millis(1500)));
    let unreadable = heard("data: {\"type\":\n\n").await.outcome.unwrap_err();
    assert_eq!(unreadable.class, ModelErrorClass::Protocol);
}

#[tokio::test]
async fn a_status_is_of_its_class() {
    let error = |code: &str| json!({ "error": { "type": "invalid_request_error", "code": code, "message": "No." } });
    let cases = [
        (401, "invalid_api_key", ModelErrorClass::Auth),
        (400, "context_length_exceeded", ModelErrorClass::ContextOverflow),
        (400, "unknown_parameter", ModelErrorClass::BadRequest),
        (429, "rate_limit_exceeded", ModelErrorClass::RateLimit),
        (503, "", ModelErrorClass::Overloaded),
    ];
    for (status, code, class) in cases {
        let server = Server::start([Reply::json(status, &error(code).to_string())]).await;
        let model = Arc::new(model(&server, "test-model").build().unwrap());
        let error = ask(&model, hello()).await.outcome.unwrap_err();
        assert_eq!((error.class, error.status), (class, Some(status)));
    }
}

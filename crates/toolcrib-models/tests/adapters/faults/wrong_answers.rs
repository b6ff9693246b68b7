//! Success responses that are not the requested stream.

use serde_json::{Value, json};
use toolcrib_core::{Arguments, ModelErrorClass, StopReason};
use toolcrib_models::Vendor;
use toolcrib_testbed::{Bytes, CannedServer, Reply};

use super::{Answer, answered, class, hear, heard_of, model, streamed, wire};

#[tokio::test]
async fn what_is_neither_a_stream_nor_an_answer_is_refused() {
    let page = "<html><body>Sign in to the guest network.</body></html>";
    for vendor in Vendor::ALL {
        let whole = wire::frames(vendor, &Answer::text(&["Hi."])).concat();
        // (reply, part of the error)
        let replies = [
            (
                Reply::new(200).header("content-type", "text/html; charset=utf-8").body(page),
                "`text/html`",
            ),
            (
                Reply::new(200).header("content-type", "text/plain").body("error: no"),
                "`text/plain`",
            ),
            (
                Reply::new(200).header("content-type", "image/png").body(&b"\x89PNG"[..]),
                "`image/png`",
            ),
            (Reply::new(200).header("content-type", "").body("Bad gateway"), "instead of"),
            (
                wire::reply(vendor)
                    .header("content-encoding", "gzip")
                    .body(&b"\x1f\x8b\x08\x00"[..]),
                "",
            ),
            (wire::reply(vendor).header("content-encoding", "br, made-up").body(whole), ""),
        ];
        for (reply, part) in replies {
            let heard = heard_of(vendor, reply.clone()).await;
            assert_eq!(class(&heard), ModelErrorClass::Protocol, "{vendor}: {reply:?}");
            let error = heard.outcome.expect_err("no answer");
            assert!(error.message.contains(part), "{vendor}: {error}");
            assert_eq!(heard.text, "");
        }
        // A page does not have to end.
        let endless = Reply::new(200).header("content-type", "text/html").piece(page).hold();
        assert_eq!(class(&heard_of(vendor, endless).await), ModelErrorClass::Protocol, "{vendor}");
    }
    for (json, part) in
        [("{\"status\":\"ok\"}", "ignores `stream`"), ("{\"choices\":[", "ignores `stream`")]
    {
        let reply = Reply::new(200).header("content-type", "application/json").body(json);
        let heard = heard_of(Vendor::OpenAi, reply).await;
        let error = heard.outcome.expect_err("no answer");
        assert!(error.message.contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_stream_is_read_whatever_its_media_type_says() {
    for vendor in Vendor::ALL {
        let whole = wire::frames(vendor, &Answer::text(&["Hi", "."])).concat();
        for media_type in [
            "text/plain; charset=utf-8",
            "application/json",
            "application/octet-stream",
            "",
            "text/html",
        ] {
            let bytes = whole.as_bytes().chunks(7).map(Bytes::copy_from_slice);
            let reply = Reply::new(200).header("content-type", media_type).pieces(bytes);
            assert_eq!(heard_of(vendor, reply).await.text, "Hi.", "{vendor} {media_type}");
        }
    }
    // A server of Ollama's API behind a proxy that sends events, and one of OpenAI's that sends lines.
    let line = json!({ "message": { "content": "Hi." }, "done": true, "done_reason": "stop" });
    let reply = Reply::sse().body(format!("data: {line}\n\n"));
    assert_eq!(heard_of(Vendor::Ollama, reply).await.text, "Hi.");
    let line = |delta: &str, reason: Value| json!({ "choices": [{ "delta": { "content": delta }, "finish_reason": reason }] });
    let lines = format!("{}\n{}\n", line("Hi", Value::Null), line(".", json!("stop")));
    assert_eq!(heard_of(Vendor::OpenAi, Reply::ndjson().body(lines)).await.text, "Hi.");
}

/// The whole response of a server that ignores `stream`: a text, two calls, and their usage.
fn whole_response(vendor: Vendor) -> Value {
    let arguments = json!({ "id": 1042 });
    match vendor {
        Vendor::OpenAi => {
            let call = |id: &str| {
                json!({ "id": id, "type": "function",
                "function": { "name": "find_order", "arguments": arguments.to_string() } })
            };
            json!({ "id": "x", "object": "chat.completion", "choices": [{ "index": 0, "message": {
                "role": "assistant", "content": "Hi.", "tool_calls": [call("a"), call("b")] },
                "finish_reason": "tool_calls" }],
                "usage": { "prompt_tokens": 7, "completion_tokens": 3 } })
        }
        Vendor::Anthropic => {
            let call = |id: &str| {
                json!({ "type": "tool_use", "id": id, "name": "find_order",
                "input": arguments })
            };
            json!({ "type": "message", "id": "x", "role": "assistant",
                "content": [{ "type": "text", "text": "Hi." }, call("a"), call("b")],
                "stop_reason": "tool_use", "usage": { "input_tokens": 7, "output_tokens": 3 } })
        }
        Vendor::Gemini => {
            let call = |id: &str| {
                json!({ "functionCall": { "id": id, "name": "find_order",
                "args": arguments } })
            };
            json!({ "candidates": [{ "content": { "parts": [{ "text": "Hi." }, call("a"), call("b")] },
                "finishReason": "STOP" }],
                "usageMetadata": { "promptTokenCount": 7, "candidatesTokenCount": 3 } })
        }
        _ => {
            let call = |id: &str| {
                json!({ "id": id, "function": { "name": "find_order",
                "arguments": arguments } })
            };
            json!({ "message": { "content": "Hi.", "tool_calls": [call("a"), call("b")] },
                "done": true, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3 })
        }
    }
}

#[tokio::test]
async fn a_whole_response_instead_of_a_stream_is_read() {
    for vendor in Vendor::ALL {
        let whole = whole_response(vendor);
        let indented = serde_json::to_string_pretty(&whole).unwrap();
        let mut bodies = vec![whole.to_string(), indented];
        if vendor == Vendor::Gemini {
            bodies.push(json!([whole]).to_string());
        }
        for body in bodies {
            let reply =
                Reply::new(200).header("content-type", "application/json").body(body.clone());
            let heard = heard_of(vendor, reply).await;
            let response =
                heard.outcome.unwrap_or_else(|error| panic!("{vendor}: {error}: {body}"));
            assert_eq!((&*response.text, response.stop), ("Hi.", StopReason::Finished), "{vendor}");
            assert_eq!(response.usage.output_tokens, 3, "{vendor}");
            let ids: Vec<_> = response.calls.iter().map(|call| &*call.id).collect();
            assert_eq!(ids, ["a", "b"], "{vendor}");
            let arguments = Arguments::Text("{\"id\":1042}".into());
            let compact = |arguments: &Arguments| match arguments {
                Arguments::Text(text) => Arguments::Text(text.split_whitespace().collect()),
                Arguments::Json(value) => Arguments::Text(value.to_string()),
            };
            assert!(
                response.calls.iter().all(|call| compact(&call.arguments) == arguments),
                "{vendor}: {:?}",
                response.calls
            );
        }
    }
}

#[tokio::test]
async fn a_stream_without_a_type_or_with_a_long_one_is_taken() {
    for vendor in Vendor::ALL {
        let whole = wire::frames(vendor, &Answer::text(&["Hi", "."])).concat();
        let media_type = match vendor {
            Vendor::Ollama => "Application/JSON ; charset=\"utf-8\"",
            _ => "Text/Event-Stream;charset=UTF-8; x=y",
        };
        let replies = [
            Reply::new(200).piece(whole.clone()),
            Reply::new(200).header("content-type", media_type).piece(whole.clone()),
            wire::reply(vendor).header("content-encoding", "identity").piece(whole.clone()),
            wire::reply(vendor).piece(whole).until_close(),
        ];
        for reply in replies {
            assert_eq!(heard_of(vendor, reply).await.text, "Hi.", "{vendor}");
        }
    }
}

#[tokio::test]
async fn an_error_in_place_of_the_stream_is_the_vendors() {
    for vendor in Vendor::ALL {
        let reply = Reply::json(200, &wire::error_body(vendor, "The cluster is on fire."));
        let heard = heard_of(vendor, reply).await;
        let error = heard.outcome.expect_err("no answer");
        assert!(error.message.contains("The cluster is on fire."), "{vendor}: {error}");
    }
    // The vendor's own class, if it names one.
    let spent = json!({ "error": { "message": "Spent.", "code": "insufficient_quota" } });
    let heard = heard_of(Vendor::OpenAi, Reply::json(200, &spent)).await;
    assert_eq!(class(&heard), ModelErrorClass::Quota);
    // Or the status that it would have had.
    let spent = json!({ "error": { "message": "Spent.", "code": 402 } });
    let heard = heard_of(Vendor::OpenAi, Reply::json(200, &spent)).await;
    assert_eq!(class(&heard), ModelErrorClass::Quota);
}

#[tokio::test]
async fn an_empty_response_is_a_lost_connection() {
    for vendor in Vendor::ALL {
        let replies = [
            wire::reply(vendor).body(""),
            wire::reply(vendor),
            wire::reply(vendor).until_close(),
            wire::reply(vendor).piece("\n\n\n"),
            wire::reply(vendor).piece(wire::keep_alive(vendor)),
            Reply::new(200).content_length(0),
        ];
        for reply in replies {
            let heard = heard_of(vendor, reply.clone()).await;
            assert_eq!(class(&heard), ModelErrorClass::Network, "{vendor}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn errors_within_the_stream_end_it_where_they_stand() {
    for vendor in Vendor::ALL {
        let said =
            Answer::text(&["Look", "ing", " up."]).calling("a", "find_order", &["{\"id\"", ":1}"]);
        let frames = wire::frames(vendor, &said);
        // Data after the end is ignored: Gemini's end is that of the stream itself.
        let before_the_end = frames.len() - usize::from(vendor != Vendor::Gemini);
        for at in 0..=before_the_end {
            let mut broken = frames.clone();
            broken.insert(at, wire::error(vendor, "The cluster is on fire."));
            let heard = heard_of(vendor, streamed(vendor, &broken)).await;
            let error = heard.outcome.as_ref().expect_err("an error");
            assert_eq!(error.class, ModelErrorClass::Incomplete, "{vendor} at {at}: {error}");
            assert!(error.message.contains("The cluster is on fire."), "{vendor}: {error}");
            assert!("Looking up.".starts_with(&heard.text), "{vendor}: {}", heard.text);
        }
    }
}

#[tokio::test]
async fn events_after_the_end_are_ignored() {
    for vendor in Vendor::ALL {
        let said = Answer::text(&["Hi", "."]);
        let frames = wire::frames(vendor, &said);
        // Gemini has no last frame: there what comes later is more of the answer.
        if vendor == Vendor::Gemini {
            continue;
        }
        for after in [
            wire::text(vendor, "?"),
            frames.concat(),
            wire::error(vendor, "?"),
            "\x00\u{ff}".into(),
        ] {
            let mut more = frames.clone();
            more.push(after);
            assert_eq!(answered(vendor, &more).await.text, "Hi.", "{vendor}");
        }
        // Also in pieces, for ever, on a connection that is not used again.
        let endless = frames
            .iter()
            .chain([&wire::text(vendor, "?")])
            .fold(wire::reply(vendor), |reply, frame| reply.piece(frame.clone()));
        let server =
            CannedServer::start([endless.hold(), streamed(vendor, &frames)]).await.unwrap();
        let model = model(&server, vendor);
        for _ in 0..2 {
            assert_eq!(hear(&model).await.outcome.unwrap().text, "Hi.", "{vendor}");
        }
        assert_eq!(server.connections(), 2);
    }
}

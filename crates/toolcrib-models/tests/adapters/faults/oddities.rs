//! Frames that are odd, within a stream that is whole.

use serde_json::{Value, json};
use toolcrib_core::{Arguments, ModelErrorClass};
use toolcrib_models::Vendor;

use super::{Answer, answered, class, heard_of, streamed, wire};
use wire::frame;

/// A whole answer with frames put into its midst.
fn with(vendor: Vendor, odd: &[String]) -> Vec<String> {
    let said = Answer::text(&["Hi", "."]);
    let mut frames = wire::frames(vendor, &said);
    let at = frames.len() - wire::end(vendor, &said).len();
    frames.splice(at..at, odd.iter().cloned());
    frames
}

#[tokio::test]
async fn what_is_not_known_or_empty_is_passed_over() {
    for vendor in Vendor::ALL {
        let odd = [
            json!({}),
            json!({ "type": "made_up", "object": "made_up", "made_up": { "text": "?", "content": ["?"] } }),
            json!({ "type": null, "choices": null, "candidates": null, "message": null, "done": null }),
            json!({ "choices": [], "candidates": [], "message": {}, "done": false }),
            json!({ "choices": [{}], "candidates": [{}], "message": { "content": "" } }),
            json!({ "choices": [{ "delta": {} }], "candidates": [{ "content": {} }] }),
            json!({ "choices": [{ "index": 1, "delta": { "content": "?" } }],
                "candidates": [{ "index": 1, "content": { "parts": [{ "text": "?" }] } }] }),
        ];
        let mut odd: Vec<_> = odd.iter().map(|json| frame(vendor, json)).collect();
        odd.push(wire::keep_alive(vendor).repeat(3));
        odd.push(wire::text(vendor, ""));
        odd.push("\r\n".to_owned());
        if vendor != Vendor::Ollama {
            odd.push("id: 7\nretry: 1\nmade-up\n:\n\nevent: made_up\ndata: {}\n\n".to_owned());
        }
        let response = answered(vendor, &with(vendor, &odd)).await;
        assert_eq!((&*response.text, response.calls.len()), ("Hi.", 0), "{vendor}");
    }
}

#[tokio::test]
async fn what_is_no_message_ends_the_answer() {
    for vendor in Vendor::ALL {
        let odd: [&[u8]; 6] = [
            b"{\"a\":",
            b"nonsense",
            b"{} {}",
            b"{\"choices\":[{\"delta\":{\"content\":\"\xff\xfe\"}}]}",
            b"{\"a\":\"\x01\"}",
            b"\xed\xa0\x80",
        ];
        for odd in odd {
            let (before, behind): (&[u8], &[u8]) =
                if vendor == Vendor::Ollama { (b"", b"\n") } else { (b"data: ", b"\n\n") };
            let frames = with(vendor, &["{ODD}".to_owned()]).concat();
            let (first, second) = frames.split_once("{ODD}").unwrap();
            let stream = [first.as_bytes(), before, odd, behind, second.as_bytes()].concat();
            let heard = heard_of(vendor, wire::reply(vendor).piece(stream)).await;
            assert_eq!(class(&heard), ModelErrorClass::Protocol, "{vendor}: {odd:?}");
            assert_eq!(heard.text, "Hi.", "{vendor}");
        }
    }
}

#[tokio::test]
async fn invalid_token_counts_do_not_spoil_the_answer() {
    let huge = json!(u64::MAX);
    for vendor in Vendor::ALL {
        for count in
            [huge.clone(), json!(-5), json!(3.5), json!(1e300), json!("7"), json!(null), json!([])]
        {
            let counts = match vendor {
                Vendor::OpenAi => json!({ "choices": [], "usage": { "prompt_tokens": count,
                    "completion_tokens": count, "total_tokens": count,
                    "prompt_tokens_details": { "cached_tokens": count } } }),
                Vendor::Anthropic => json!({ "type": "message_delta", "delta": {}, "usage": {
                    "input_tokens": count, "cache_read_input_tokens": count,
                    "cache_creation_input_tokens": count, "output_tokens": count } }),
                Vendor::Gemini => json!({ "usageMetadata": { "promptTokenCount": count,
                    "cachedContentTokenCount": count, "candidatesTokenCount": count,
                    "thoughtsTokenCount": count, "toolUsePromptTokenCount": count } }),
                _ => json!({ "message": { "content": "" }, "done": true,
                    "prompt_eval_count": count, "eval_count": count }),
            };
            let response = answered(vendor, &with(vendor, &[frame(vendor, &counts)])).await;
            assert_eq!(response.text, "Hi.", "{vendor} {count}");
            // Sums of them stay numbers.
            let mut sum = response.usage;
            for _ in 0..1_000 {
                sum += response.usage;
            }
            assert!(sum.input_tokens < u64::MAX / 2, "{vendor} {count}");
        }
    }
}

#[tokio::test]
async fn numbers_of_calls_that_are_none_leave_the_calls() {
    for index in
        [json!(1_u64 << 63), json!(u64::MAX), json!(-1), json!("0"), json!(1.5), json!(null)]
    {
        let call = |fragment: Value| {
            let mut fragment = fragment;
            fragment["index"] = index.clone();
            frame(
                Vendor::OpenAi,
                &json!({ "choices": [{ "delta": { "tool_calls": [fragment] } }] }),
            )
        };
        let frames = with(
            Vendor::OpenAi,
            &[
                call(
                    json!({ "id": "a", "function": { "name": "find_order", "arguments": "{\"id\"" } }),
                ),
                call(json!({ "function": { "arguments": ":1}" } })),
            ],
        );
        let response = answered(Vendor::OpenAi, &frames).await;
        assert_eq!(response.calls.len(), 1, "{index}");
        assert_eq!(response.calls[0].arguments, Arguments::Text("{\"id\":1}".into()), "{index}");

        let event = |event: Value| {
            let mut event = event;
            event["index"] = index.clone();
            frame(Vendor::Anthropic, &event)
        };
        let frames = with(
            Vendor::Anthropic,
            &[
                event(json!({ "type": "content_block_start",
                "content_block": { "type": "tool_use", "id": "a", "name": "find_order" } })),
                event(json!({ "type": "content_block_delta",
                "delta": { "type": "input_json_delta", "partial_json": "{\"id\":1}" } })),
            ],
        );
        let response = answered(Vendor::Anthropic, &frames).await;
        assert_eq!(response.calls.len(), 1, "{index}");
        assert_eq!(response.calls[0].arguments, Arguments::Text("{\"id\":1}".into()), "{index}");
    }
}

#[tokio::test]
async fn calls_are_told_apart_whatever_they_are_called() {
    let long = "x".repeat(1024 * 1024);
    let odd = ["", " ", "a", "A", "\u{0}", "a\nb", "größer 👀", "\u{1b}[31m", &long];
    for vendor in Vendor::ALL {
        let mut said = Answer::text(&[]);
        for odd in odd {
            said = said.calling(odd, odd, &["{\"id\"", ":1}"]);
        }
        let response = answered(vendor, &wire::frames(vendor, &said)).await;
        let names: Vec<_> = response.calls.iter().map(|call| &*call.name).collect();
        assert_eq!(names, odd, "{vendor}");
        let whole = Arguments::Text("{\"id\":1}".into());
        assert!(response.calls.iter().all(|call| call.arguments == whole), "{vendor}");
    }
}

#[tokio::test]
async fn an_unpaired_surrogate_ends_the_answer_and_other_escapes_are_text() {
    // (in the stream, in the answer)
    let escapes = [
        (r"\u0000", Some("\u{0}")),
        (r"\ud83d\udc40", Some("👀")),
        (r"\ufffe", Some("\u{fffe}")),
        (r"\ud83d", None),
        (r"\udc40\ud83d", None),
    ];
    for vendor in Vendor::ALL {
        for (escape, character) in escapes {
            let odd = wire::text(vendor, "{ODD}").replace("{ODD}", escape);
            let heard = heard_of(vendor, streamed(vendor, &with(vendor, &[odd]))).await;
            match character {
                Some(character) => assert_eq!(heard.text, format!("Hi.{character}"), "{vendor}"),
                None => assert_eq!(class(&heard), ModelErrorClass::Protocol, "{vendor} {escape}"),
            }
        }
    }
}

#[tokio::test]
async fn a_second_end_is_no_second_answer() {
    for vendor in Vendor::ALL {
        let said = Answer::text(&["Hi", "."]).calling("a", "find_order", &["{}"]);
        let mut frames = wire::frames(vendor, &said);
        frames.extend(wire::end(vendor, &said));
        frames.extend(wire::end(vendor, &said));
        let response = answered(vendor, &frames).await;
        assert_eq!((&*response.text, response.calls.len()), ("Hi.", 1), "{vendor}");
    }
}

//! Calls that a server sends more than once, and calls that a model wrote more than once.

use serde_json::{Value, json};
use toolcrib_core::{Arguments, ModelResponse};
use toolcrib_models::Vendor;

use super::{Answer, answered, wire};
use wire::frame;

/// Names and arguments of the calls.
fn made(response: &ModelResponse) -> Vec<(String, String)> {
    let arguments = |arguments: &Arguments| match arguments {
        Arguments::Text(text) => text.clone(),
        Arguments::Json(value) => value.to_string(),
    };
    let calls = response.calls.iter();
    calls.map(|call| (call.name.to_string(), arguments(&call.arguments))).collect()
}

/// The frames of an answer without its beginning and end.
fn inner(vendor: Vendor, said: &Answer) -> Vec<String> {
    let frames = wire::frames(vendor, said);
    let (begin, end) = (wire::beginning(vendor).len(), wire::end(vendor, said).len());
    frames[begin..frames.len() - end].to_vec()
}

/// An answer of these frames.
async fn heard(vendor: Vendor, inner: &[Vec<String>], said: &Answer) -> ModelResponse {
    let frames = [wire::beginning(vendor), inner.concat(), wire::end(vendor, said)].concat();
    answered(vendor, &frames).await
}

#[tokio::test]
async fn a_call_that_is_repeated_with_its_id_is_one_call() {
    for vendor in Vendor::ALL {
        let first = Answer::text(&[]).calling("a", "add", &["{\"id\"", ":1}"]);
        let both = first.clone().calling("b", "add", &["{\"id\":2}"]);
        let (one, two) = (inner(vendor, &first), inner(vendor, &both));
        let wanted = [("add", "{\"id\":1}"), ("add", "{\"id\":2}")]
            .map(|(name, arguments)| (name.to_owned(), arguments.to_owned()));
        let response = heard(vendor, &[one.clone(), one.clone(), one.clone()], &both).await;
        assert_eq!(made(&response), wanted[..1], "{vendor}");
        for again in [&one, &two] {
            let response = heard(vendor, &[two.clone(), again.clone()], &both).await;
            assert_eq!(made(&response), wanted, "{vendor}");
        }
        // The same JSON, written in another way.
        let spaced = Answer::text(&[]).calling("a", "add", &["{ \"id\" : 1 }"]);
        let response = heard(vendor, &[one.clone(), inner(vendor, &spaced)], &both).await;
        assert_eq!(made(&response), wanted[..1], "{vendor}");
    }
}

#[tokio::test]
async fn calls_that_a_model_wrote_twice_are_two_calls() {
    for vendor in Vendor::ALL {
        let twice = Answer::text(&[]).calling("a", "roll", &["{}"]).calling("b", "roll", &["{}"]);
        let response = heard(vendor, &[inner(vendor, &twice)], &twice).await;
        assert_eq!(response.calls.len(), 2, "{vendor}");
        // One id for other arguments, or another tool: some servers give every call the same.
        let mut other = Answer::text(&[]).calling("a", "roll", &["{\"n\":1}"]);
        other = other.calling("a", "roll", &["{\"n\":2}"]).calling("a", "flip", &["{\"n\":2}"]);
        let response = heard(vendor, &[inner(vendor, &other)], &other).await;
        assert_eq!(response.calls.len(), 3, "{vendor}");
    }
}

/// A frame with whole calls without ids, and with the reason to stop if it is the last.
fn without_ids(vendor: Vendor, calls: Calls<'_>, numbered: bool, is_last: bool) -> String {
    let function = |index: usize, (name, id): &(&str, u64)| {
        let arguments = json!({ "id": id });
        let mut function = json!({ "name": name, "arguments": arguments });
        if vendor == Vendor::OpenAi {
            function["arguments"] = arguments.to_string().into();
        }
        let mut call = json!({ "function": function });
        if numbered && vendor == Vendor::OpenAi {
            call["index"] = index.into();
        } else if numbered {
            call["function"]["index"] = index.into();
        }
        call
    };
    let functions: Vec<_> =
        calls.iter().enumerate().map(|(index, call)| function(index, call)).collect();
    let json = match vendor {
        Vendor::OpenAi => json!({ "choices": [{ "delta": { "tool_calls": functions },
            "finish_reason": is_last.then_some("tool_calls") }] }),
        Vendor::Gemini => {
            let parts = calls.iter().map(
                |(name, id)| json!({ "functionCall": { "name": name, "args": { "id": id } } }),
            );
            json!({ "candidates": [{ "content": { "parts": parts.collect::<Vec<Value>>() },
                "finishReason": is_last.then_some("STOP") }] })
        }
        _ => json!({ "message": { "tool_calls": functions }, "done": is_last,
            "done_reason": is_last.then_some("stop") }),
    };
    frame(vendor, &json)
}

/// The calls of a frame, each with a number as its argument.
type Calls<'a> = &'a [(&'a str, u64)];

/// Vendors whose calls may lack ids.
const WITHOUT_IDS: [Vendor; 3] = [Vendor::OpenAi, Vendor::Gemini, Vendor::Ollama];

#[tokio::test]
async fn a_last_frame_that_repeats_all_calls_without_ids_makes_none_again() {
    let (a, b, c) = (("add", 1), ("add", 2), ("drop", 3));
    let cases: [(&[Calls<'_>], usize); 11] = [
        (&[&[a], &[a]], 1),
        (&[&[a], &[b], &[a, b]], 2),
        (&[&[a, b], &[a, b]], 2),
        // Each frame has all calls so far.
        (&[&[a], &[a, b], &[a, b, c]], 3),
        (&[&[a], &[a, b], &[a, b, c], &[a, b, c]], 3),
        // A repeated call, a part of the list, or the list in another order is new.
        (&[&[a, a]], 2),
        (&[&[a], &[a], &[b]], 3),
        (&[&[a], &[b], &[a]], 3),
        (&[&[a], &[b], &[b, a]], 4),
        (&[&[a], &[b]], 2),
        (&[&[a, a], &[a, a]], 2),
    ];
    for vendor in WITHOUT_IDS {
        for (frames, calls) in &cases {
            let last = frames.len() - 1;
            let stream: Vec<_> = frames
                .iter()
                .enumerate()
                .map(|(at, calls)| without_ids(vendor, calls, false, at == last))
                .collect();
            let response = answered(vendor, &stream).await;
            assert_eq!(response.calls.len(), *calls, "{vendor}: {frames:?}");
        }
    }
}

#[tokio::test]
async fn ollama_sends_equal_calls_line_by_line_and_all_are_made() {
    let vendor = Vendor::Ollama;
    let line = || without_ids(vendor, &[("roll", 6)], false, false);
    let end = wire::end(vendor, &Answer::default()).concat();
    let response = answered(vendor, &[line(), line(), line(), end]).await;
    assert_eq!(response.calls.len(), 3);
}

#[tokio::test]
async fn a_number_tells_calls_without_ids_apart() {
    for vendor in [Vendor::OpenAi, Vendor::Ollama] {
        let a = ("add", 1);
        let end = || wire::end(vendor, &Answer::default()).concat();
        let numbered = |calls: &[(&str, u64)]| without_ids(vendor, calls, true, false);
        let again = [numbered(&[a]), numbered(&[a]), end()];
        assert_eq!(answered(vendor, &again).await.calls.len(), 1, "{vendor}");
        let second = numbered(&[a]).replace("\"index\":0", "\"index\":1");
        let two = [numbered(&[a]), second, end()];
        assert_eq!(answered(vendor, &two).await.calls.len(), 2, "{vendor}");
    }
}

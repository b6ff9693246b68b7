//! Too much data.

use std::{iter::repeat_n, time::Duration};

use serde_json::json;
use toolcrib_core::{Arguments, ModelErrorClass};
use toolcrib_models::Vendor;
use toolcrib_testbed::{Bytes, CannedServer, Reply};

use super::{Answer, answered, builder, class, hear, heard_of, in_time, model, streamed, wire};

const MEGABYTE: usize = 1024 * 1024;

/// A reply that is longer than any client reads: 512 MB of one piece.
fn flood(vendor: Vendor, begins: &str, piece: &str) -> Reply {
    let piece = Bytes::from(piece.repeat(MEGABYTE / piece.len()));
    wire::reply(vendor).piece(begins.to_owned()).pieces(repeat_n(piece, 512))
}

#[tokio::test]
async fn a_line_without_an_end_is_given_up() {
    for vendor in Vendor::ALL {
        let begins = match vendor {
            Vendor::Ollama => "{\"message\":{\"content\":\"",
            _ => "data: {\"choices\":[{\"delta\":{\"content\":\"",
        };
        for (begins, piece) in [(begins, "x"), (":", "x"), ("data: ", "\u{1F440}")] {
            let server = CannedServer::start([flood(vendor, begins, piece)]).await.unwrap();
            let heard = hear(&model(&server, vendor)).await;
            assert_eq!(class(&heard), ModelErrorClass::Protocol, "{vendor}: {begins}");
            assert_eq!(heard.text, "");
            in_time(server.wait_until_left(1)).await;
        }
    }
}

#[tokio::test]
async fn an_event_of_lines_without_an_end_is_given_up() {
    // All vendors' events are read as one's.
    let vendor = Vendor::OpenAi;
    let line = format!("data: {}\n", "x".repeat(1000));
    for piece in [&*line, "data:\n"] {
        let server = CannedServer::start([flood(vendor, "", piece)]).await.unwrap();
        let heard = hear(&model(&server, vendor)).await;
        assert_eq!(class(&heard), ModelErrorClass::Protocol, "{vendor} {piece:?}");
        in_time(server.wait_until_left(1)).await;
    }
}

#[tokio::test]
async fn an_answer_larger_than_any_is_given_up() {
    // Of frames that are long, since there are so many bytes. All vendors' are counted as one's.
    let vendor = Vendor::Ollama;
    let frame = wire::frame(vendor, &json!({ "made_up": "x".repeat(7 * MEGABYTE) }));
    let frames = repeat_n(Bytes::from(frame), 64);
    let server = CannedServer::start([wire::reply(vendor).pieces(frames)]).await.unwrap();
    let heard = hear(&model(&server, vendor)).await;
    assert_eq!(class(&heard), ModelErrorClass::Protocol, "{vendor}");
    in_time(server.wait_until_left(1)).await;
}

/// An endless and steady stream of small pieces.
async fn check_endless(vendor: Vendor, piece: String, text: &str) {
    let endless = repeat_n(Bytes::from(piece), 10_000);
    let reply = wire::reply(vendor).piece(wire::beginning(vendor).concat());
    let drip =
        endless.fold(reply, |reply, piece| reply.piece(piece).pause(Duration::from_millis(2)));
    let server = CannedServer::start([drip]).await.unwrap();
    let model = builder(&server.url(), vendor).timeout(Duration::from_millis(200)).build().unwrap();
    let heard = hear(&model.into()).await;
    assert_eq!(class(&heard), ModelErrorClass::Timeout, "{vendor}: {:?}", heard.outcome);
    assert_eq!(heard.text.replace(text, ""), "", "{vendor}");
    in_time(server.wait_until_left(1)).await;
}

#[tokio::test]
async fn what_never_ends_is_given_up_in_time() {
    let checks = Vendor::ALL.map(|vendor| async move {
        check_endless(vendor, wire::text(vendor, "la"), "la").await;
        check_endless(vendor, wire::keep_alive(vendor).to_owned(), "").await;
        check_endless(vendor, wire::text(vendor, ""), "").await;
        check_endless(vendor, "\n".to_owned(), "").await;
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test]
async fn long_arguments_arrive_whole() {
    let piece = "größer ".repeat(20_000);
    for vendor in [Vendor::OpenAi, Vendor::Anthropic, Vendor::Ollama] {
        let said = |megabytes: usize| {
            let pieces = repeat_n(&*piece, megabytes * MEGABYTE / piece.len());
            let arguments: Vec<_> =
                ["{\"text\":\""].into_iter().chain(pieces).chain(["\"}"]).collect();
            Answer::text(&[]).calling("call_a", "write", &arguments)
        };
        // Where they come in one message, a message may have no more than 8 MiB.
        let at_once = vendor == Vendor::Ollama;
        let long = said(if at_once { 7 } else { 20 });
        let response = answered(vendor, &wire::frames(vendor, &long)).await;
        let Arguments::Text(text) = &response.calls[0].arguments else { panic!("{vendor}") };
        assert!(*text == long.calls[0].arguments.concat(), "{vendor}: {} bytes", text.len());
        if at_once {
            let frames = wire::frames(vendor, &said(9));
            let heard = heard_of(vendor, streamed(vendor, &frames)).await;
            assert_eq!(class(&heard), ModelErrorClass::Protocol, "{vendor}");
        }
    }
}

#[tokio::test]
async fn a_response_of_thousands_of_calls_is_read() {
    for vendor in Vendor::ALL {
        let mut said = Answer::text(&["All at once."]);
        for number in 0..2_000 {
            said = said.calling(&format!("call_{number}"), "find_order", &["{\"id\":", "1}"]);
        }
        let response = answered(vendor, &wire::frames(vendor, &said)).await;
        assert_eq!(response.calls.len(), 2_000, "{vendor}");
        assert_eq!(&*response.calls[1_999].id, "call_1999", "{vendor}");
        assert!(
            response
                .calls
                .iter()
                .all(|call| call.arguments == Arguments::Text("{\"id\":1}".into()))
        );
    }
}

#[tokio::test]
async fn deeply_nested_json_is_passed_on_in_arguments_and_refused_elsewhere() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let deep = format!("{{\"a\":{open}{close}}}");
    for vendor in Vendor::ALL {
        // In the arguments of a call it is the caller's matter.
        let said = Answer::text(&[]).calling("call_a", "find_order", &[&deep]);
        let response = answered(vendor, &wire::frames(vendor, &said)).await;
        assert_eq!(response.calls[0].arguments, Arguments::Text(deep.clone()), "{vendor}");
        // Elsewhere it is not a message.
        let unknown = wire::frame(vendor, &json!({ "type": "made_up", "made_up": "?" }));
        let unknown = unknown.replace("\"?\"", &deep);
        let mut frames = vec![unknown];
        frames.extend(wire::frames(vendor, &Answer::text(&["Hi."])));
        let heard = heard_of(vendor, streamed(vendor, &frames)).await;
        if let Err(error) = &heard.outcome {
            assert_eq!(error.class, ModelErrorClass::Protocol, "{vendor}: {error}");
        }
    }
}

//! Success responses that are not the requested stream.

use toolcrib_core::ModelErrorClass;
use toolcrib_models::Vendor;
use toolcrib_testbed::{CannedServer, Reply};

use super::{Said, answered, class, hear, heard_of, model, streamed, wire};

#[tokio::test]
async fn what_is_no_stream_is_refused() {
    let page = "<html><body>Sign in to the guest network.</body></html>";
    for vendor in Vendor::ALL {
        let whole = wire::frames(vendor, &Said::text(&["Hi."])).concat();
        let replies = [
            Reply::new(200).header("content-type", "text/html; charset=utf-8").body(page),
            Reply::new(200).header("content-type", "text/plain").body(whole.clone()),
            Reply::new(200).header("content-type", "application/octet-stream").body(whole.clone()),
            Reply::new(200).header("content-type", "").body(whole.clone()),
            Reply::new(200).header("content-type", "text/event-streams").body(whole.clone()),
            wire::reply(vendor).header("content-encoding", "gzip").body(&b"\x1f\x8b\x08\x00"[..]),
            wire::reply(vendor).header("content-encoding", "br, made-up").body(whole),
        ];
        for reply in replies {
            let heard = heard_of(vendor, reply.clone()).await;
            assert_eq!(class(&heard), ModelErrorClass::Protocol, "{vendor}: {reply:?}");
            assert_eq!(heard.text, "");
        }
    }
}

#[tokio::test]
async fn a_stream_without_a_type_or_with_a_long_one_is_taken() {
    for vendor in Vendor::ALL {
        let whole = wire::frames(vendor, &Said::text(&["Hi", "."])).concat();
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
    let spent =
        serde_json::json!({ "error": { "message": "Spent.", "code": "insufficient_quota" } });
    let heard = heard_of(Vendor::OpenAi, Reply::json(200, &spent)).await;
    assert_eq!(class(&heard), ModelErrorClass::Quota);
    // Or the status that it would have had.
    let spent = serde_json::json!({ "error": { "message": "Spent.", "code": 402 } });
    let heard = heard_of(Vendor::OpenAi, Reply::json(200, &spent)).await;
    assert_eq!(class(&heard), ModelErrorClass::Quota);
}

#[tokio::test]
async fn nothing_at_all_is_a_lost_connection() {
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
            Said::text(&["Look", "ing", " up."]).calling("a", "find_order", &["{\"id\"", ":1}"]);
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
async fn what_comes_after_the_end_is_nothing() {
    for vendor in Vendor::ALL {
        let said = Said::text(&["Hi", "."]);
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

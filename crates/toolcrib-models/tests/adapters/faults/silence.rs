//! Servers that fall silent, or are slow.

use std::{sync::Arc, time::Duration};

use toolcrib_core::{ModelError, ModelErrorClass};
use toolcrib_models::{Vendor, VendorModel};
use toolcrib_testbed::{CannedServer, Reply};

use super::{Answer, HANGS, builder, class, hear, in_time, wire};
use crate::support::ReceivedAnswer;

/// The idle timeout.
const IDLE: Duration = Duration::from_millis(150);

/// The first idle timeout where an answer must arrive within it.
const LONG_IDLE: Duration = Duration::from_secs(2);

async fn impatient(
    vendor: Vendor,
    idle: Duration,
    reply: Reply,
) -> (CannedServer, Arc<VendorModel>) {
    let server = CannedServer::start([reply]).await.unwrap();
    let model = builder(&server.url(), vendor).idle_timeout(idle).build().unwrap();
    (server, Arc::new(model))
}

/// What is heard of a server that answers within the idle timeout. A busy machine may need a longer
/// one.
async fn hear_within(vendor: Vendor, reply: impl Fn(Duration) -> Reply) -> ReceivedAnswer {
    let mut idle = LONG_IDLE;
    loop {
        let (_server, model) = impatient(vendor, idle, reply(idle)).await;
        let heard = hear(&model).await;
        let is_late = |error: &ModelError| error.class == ModelErrorClass::Timeout;
        if idle > HANGS / 4 || !heard.outcome.as_ref().is_err_and(is_late) {
            return heard;
        }
        idle *= 4;
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up() {
    let checks = Vendor::ALL.map(|vendor| async move {
        let said =
            Answer::text(&["Look", "ing."]).calling("call_a", "find_order", &["{\"id\"", ":1}"]);
        let frames = wire::frames(vendor, &said);
        let begun = frames[..frames.len() / 2].concat();
        let half = &begun[..begun.len() - 3];
        for reply in [
            Reply::nothing().hold(),
            Reply::nothing().piece("HTTP/1.1 200 OK\r\ncont").hold(),
            wire::reply(vendor).hold(),
            wire::reply(vendor).piece(begun.clone()).hold(),
            wire::reply(vendor).piece(half.to_owned()).hold(),
            wire::reply(vendor).content_length(1_000_000).piece(half.to_owned()).hold(),
        ] {
            let (server, model) = impatient(vendor, IDLE, reply).await;
            let heard = hear(&model).await;
            assert_eq!(class(&heard), ModelErrorClass::Timeout, "{vendor}: {heard:?}");
            assert!("Looking.".starts_with(&heard.text), "{vendor}: {}", heard.text);
            in_time(server.wait_until_left(1)).await;
        }
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test]
async fn a_server_that_drips_is_given_up_when_the_time_is_over() {
    let checks = Vendor::ALL.map(|vendor| async move {
        let stream = wire::frames(vendor, &Answer::text(&["Slow", "ly."])).concat();
        // Each byte comes before the wait for it is over.
        let drip = stream
            .bytes()
            .fold(wire::reply(vendor), |reply, byte| reply.piece(vec![byte]).pause(IDLE / 5));
        let server = CannedServer::start([drip.clone(), drip]).await.unwrap();
        let model = builder(&server.url(), vendor).timeout(IDLE * 3);
        let heard = hear(&Arc::new(model.build().unwrap())).await;
        assert_eq!(class(&heard), ModelErrorClass::Timeout, "{vendor}: {heard:?}");
        let message = heard.outcome.unwrap_err().message;
        assert!(message.contains("completely"), "it is the whole that took too long: {message}");
        assert!("Slowly.".starts_with(&heard.text));
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test]
async fn what_keeps_a_connection_alive_keeps_the_wait_alive() {
    let checks = Vendor::ALL.map(|vendor| async move {
        // For longer than nothing may come.
        let heard = hear_within(vendor, |idle| {
            let waiting = (0..10).fold(wire::reply(vendor), |reply, _| {
                reply.piece(wire::keep_alive(vendor)).pause(idle / 8)
            });
            waiting.piece(wire::frames(vendor, &Answer::text(&["At last."])).concat())
        })
        .await;
        assert_eq!(heard.outcome.unwrap().text, "At last.", "{vendor}");
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test]
async fn a_whole_answer_is_one_though_the_server_does_not_end() {
    let checks = Vendor::ALL.map(|vendor| async move {
        let said = Answer::text(&["Hi", "."]);
        let frames = wire::frames(vendor, &said).concat();
        let reply = |_| wire::reply(vendor).piece(frames.clone()).hold();
        let heard = hear_within(vendor, reply).await;
        assert_eq!(heard.outcome.unwrap().text, "Hi.", "{vendor}");
    });
    futures_util::future::join_all(checks).await;

    // Nor does it say that this was all, where the protocol has a word for that.
    let checks = [Vendor::OpenAi, Vendor::Gemini].map(|vendor| async move {
        let frames = wire::frames(vendor, &Answer::text(&["Hi", "."])).concat();
        let whole = frames.trim_end_matches("data: [DONE]\n\n").to_owned();
        for reply in [
            wire::reply(vendor).piece(whole.clone()).hold(),
            wire::reply(vendor).piece(whole).cut(),
        ] {
            let response = hear_within(vendor, |_| reply.clone()).await.outcome.unwrap();
            assert_eq!((&*response.text, response.usage.output_tokens), ("Hi.", 3), "{vendor}");
        }
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test]
async fn the_longest_timeouts_are_accepted() {
    for vendor in Vendor::ALL {
        let whole = wire::frames(vendor, &Answer::text(&["Hi."])).concat();
        let server = CannedServer::start([wire::reply(vendor).piece(whole)]).await.unwrap();
        let endless =
            builder(&server.url(), vendor).idle_timeout(Duration::MAX).timeout(Duration::MAX);
        assert_eq!(hear(&Arc::new(endless.build().unwrap())).await.outcome.unwrap().text, "Hi.");
    }
}

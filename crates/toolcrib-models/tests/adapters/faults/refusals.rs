//! Servers that respond with errors.

use std::time::Duration;

use toolcrib_core::{ModelError, ModelErrorClass};
use toolcrib_models::Vendor;
use toolcrib_testbed::{Bytes, CannedServer, Reply};

use super::{class, hear, heard_of, in_time, model, wire};

const PAGE: &str = "<!DOCTYPE html>\n<html><head><title>No</title></head><body>\0No.</body></html>";

async fn refused(vendor: Vendor, reply: Reply) -> ModelError {
    let heard = heard_of(vendor, reply).await;
    assert_eq!((&*heard.text, &*heard.reasoning), ("", ""));
    heard.outcome.expect_err("a refusal")
}

#[tokio::test]
async fn a_status_is_a_class_whatever_its_body_is() {
    let classes = [
        (400, ModelErrorClass::BadRequest),
        (401, ModelErrorClass::Auth),
        (402, ModelErrorClass::Quota),
        (403, ModelErrorClass::Auth),
        (404, ModelErrorClass::BadRequest),
        (405, ModelErrorClass::BadRequest),
        (408, ModelErrorClass::Overloaded),
        (409, ModelErrorClass::Overloaded),
        (413, ModelErrorClass::ContextOverflow),
        (422, ModelErrorClass::BadRequest),
        (429, ModelErrorClass::RateLimit),
        (500, ModelErrorClass::Server),
        (501, ModelErrorClass::Server),
        (502, ModelErrorClass::Overloaded),
        (503, ModelErrorClass::Overloaded),
        (504, ModelErrorClass::Overloaded),
        (524, ModelErrorClass::Server),
        (529, ModelErrorClass::Overloaded),
        (999, ModelErrorClass::Protocol),
    ];
    for vendor in Vendor::ALL {
        for (status, class) in classes {
            let bodies = [
                Reply::new(status).content_length(0),
                Reply::new(status).header("content-type", "text/html").body(PAGE),
                Reply::new(status).body(&b"\xff\xfe\x00"[..]),
                Reply::new(status).body("null"),
                Reply::new(status).body("[[[]]]"),
                Reply::json(status, &wire::error_body(vendor, "No.")),
                Reply::json(status, &serde_json::json!({ "error": { "message": 5, "code": [] } })),
            ];
            for reply in bodies {
                let error = refused(vendor, reply.clone()).await;
                assert_eq!(error.class, class, "{vendor} {status}: {error}, {reply:?}");
                assert_eq!(error.status, Some(status));
                assert!(!error.message.contains(char::is_control), "{vendor} {status}: {error:?}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_no_refusal_and_no_answer_is_said_so() {
    for vendor in Vendor::ALL {
        for status in [201, 202, 204, 206, 300, 304] {
            let error = refused(vendor, Reply::new(status).content_length(0)).await;
            assert_eq!(error.class, ModelErrorClass::Protocol, "{vendor} {status}: {error}");
            assert_eq!(error.status, Some(status));
        }
    }
}

#[tokio::test]
async fn retry_after_is_what_can_be_waited_for() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let seconds = |seconds: f64| Some(Duration::from_secs_f64(seconds));
    type Headers = &'static [(&'static str, &'static str)];
    let waits: [(Headers, Option<Duration>); 21] = [
        (&[], None),
        (&[("retry-after", "2")], seconds(2.0)),
        (&[("retry-after", " 0.25 ")], seconds(0.25)),
        (&[("retry-after", "0")], seconds(0.0)),
        (&[("retry-after", "-0")], seconds(0.0)),
        (&[("retry-after", "-5")], None),
        (&[("retry-after", "NaN")], None),
        (&[("retry-after", "inf")], None),
        (&[("retry-after", "-inf")], None),
        (&[("retry-after", "1e300")], None),
        (&[("retry-after", "1e5")], Some(DAY)),
        (&[("retry-after", "99999999999999999999")], None),
        (&[("retry-after", "18446744073709551615")], None),
        (&[("retry-after", "")], None),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "später")], None),
        (&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], seconds(0.0)),
        (&[("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")], Some(DAY)),
        (&[("retry-after-ms", "1500"), ("retry-after", "9")], seconds(1.5)),
        (&[("retry-after-ms", "NaN"), ("retry-after", "9")], seconds(9.0)),
        (&[("retry-after-ms", "-1"), ("retry-after", "9")], seconds(9.0)),
    ];
    for vendor in Vendor::ALL {
        for (headers, wait) in &waits {
            for status in [429, 529] {
                let reply = headers.iter().fold(
                    Reply::json(status, &wire::error_body(vendor, "Slowly.")),
                    |reply, (name, value)| reply.header(*name, *value),
                );
                let error = refused(vendor, reply).await;
                assert_eq!(error.retry_after, *wait, "{vendor} {status} {headers:?}");
                assert!(error.message.contains("Slowly."), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn the_beginning_of_a_huge_refusal_is_enough() {
    let piece = Bytes::from(vec![b'x'; 16 * 1024 * 1024]);
    for vendor in Vendor::ALL {
        let gigabyte = Reply::new(500).pieces(vec![piece.clone(); 64]);
        let announced = Reply::new(500).content_length(usize::MAX / 2).piece(piece.clone()).hold();
        let server = CannedServer::start([gigabyte, announced]).await.unwrap();
        let model = model(&server, vendor);
        for gone in 1..=2 {
            let heard = hear(&model).await;
            assert_eq!(class(&heard), ModelErrorClass::Server, "{vendor}: {:?}", heard.outcome);
            in_time(server.wait_until_left(gone)).await;
        }
    }
}

#[tokio::test]
async fn a_refusal_that_stays_unfinished_is_one() {
    let words =
        |reply: Reply| reply.header("retry-after", "3").piece("{\"error\":{\"message\":\"Slow");
    let replies = [words(Reply::new(429)).cut(), words(Reply::new(429)).content_length(900).cut()];
    for vendor in Vendor::ALL {
        for reply in &replies {
            let error = refused(vendor, reply.clone()).await;
            assert_eq!(error.class, ModelErrorClass::RateLimit, "{vendor}: {error}");
            assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
        }
    }
    // One that goes on for ever is not waited for: the model's own times are far longer than this.
    let asked = Vendor::ALL.map(|vendor| refused(vendor, words(Reply::new(429)).hold()));
    for error in futures_util::future::join_all(asked).await {
        assert_eq!(error.class, ModelErrorClass::RateLimit, "{error}");
        assert!(error.message.contains("Slow"), "{error}");
    }
}

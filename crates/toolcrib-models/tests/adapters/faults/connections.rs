//! Reused connections, and requests that are not read.

use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use toolcrib_core::{Message, Model, ModelErrorClass};
use toolcrib_models::Vendor;
use toolcrib_testbed::{CannedServer, Reply};

use super::{Answer, builder, class, hear, in_time, model, wire};
use crate::support::request;

fn whole(vendor: Vendor, text: &str) -> Reply {
    let stream = wire::frames(vendor, &Answer::text(&[text])).concat();
    wire::reply(vendor).body(stream)
}

/// A whole response as bytes, after which the connection seems to stay open.
fn raw(vendor: Vendor, text: &str) -> String {
    let stream = wire::frames(vendor, &Answer::text(&[text])).concat();
    let kind = if vendor == Vendor::Ollama { "application/x-ndjson" } else { "text/event-stream" };
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{stream}",
        stream.len()
    )
}

#[tokio::test]
async fn one_connection_serves_one_request_after_the_other() {
    for vendor in Vendor::ALL {
        let server =
            CannedServer::start(["A", "B", "C"].map(|text| whole(vendor, text))).await.unwrap();
        let model = model(&server, vendor);
        for text in ["A", "B", "C"] {
            assert_eq!(hear(&model).await.outcome.unwrap().text, text);
        }
        assert_eq!(server.connections(), 1, "{vendor}");
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_costs_nothing() {
    for vendor in Vendor::ALL {
        let closing = [
            Reply::nothing().piece(raw(vendor, "A")),
            Reply::nothing().piece(raw(vendor, "A")).reset(),
            whole(vendor, "A").header("connection", "close"),
        ];
        for closing in closing {
            let server = CannedServer::start([closing, whole(vendor, "B")]).await.unwrap();
            let model = model(&server, vendor);
            // Data may be lost by a reset.
            let _ = hear(&model).await;
            assert_eq!(hear(&model).await.outcome.unwrap().text, "B", "{vendor}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_as_it_is_used_again_is_tried_once_more_and_no_oftener() {
    for vendor in Vendor::ALL {
        let broken = || Reply::nothing().reset();
        let server =
            CannedServer::start([whole(vendor, "A"), broken(), whole(vendor, "B")]).await.unwrap();
        let model = model(&server, vendor);
        for text in ["A", "B"] {
            assert_eq!(hear(&model).await.outcome.unwrap().text, text, "{vendor}");
        }

        let server = CannedServer::start([whole(vendor, "A"), broken(), broken()]).await.unwrap();
        let model = super::model(&server, vendor);
        hear(&model).await.outcome.unwrap();
        assert_eq!(class(&hear(&model).await), ModelErrorClass::Network, "{vendor}");
        assert_eq!(server.recorder().len(), 3, "{vendor}");

        let server = CannedServer::start([broken()]).await.unwrap();
        assert_eq!(class(&hear(&super::model(&server, vendor)).await), ModelErrorClass::Network);
        assert_eq!(server.recorder().len(), 1, "{vendor}: a new connection is not tried again");
    }
}

#[tokio::test]
async fn an_answer_that_broke_off_is_not_asked_for_again() {
    for vendor in Vendor::ALL {
        let begun = wire::beginning(vendor).concat() + &wire::text(vendor, "Once");
        let cut = wire::reply(vendor).piece(begun).cut();
        let server = CannedServer::start([whole(vendor, "A"), cut]).await.unwrap();
        let model = model(&server, vendor);
        hear(&model).await.outcome.unwrap();
        let heard = hear(&model).await;
        assert_eq!(class(&heard), ModelErrorClass::Incomplete, "{vendor}");
        assert_eq!((&*heard.text, server.recorder().len()), ("Once", 2), "{vendor}");
    }
}

#[tokio::test]
async fn an_unrequested_response_is_not_read_as_an_answer() {
    for vendor in Vendor::ALL {
        let forged = Reply::nothing().piece(raw(vendor, "A") + &raw(vendor, "forged")).hold();
        let server = CannedServer::start([forged, whole(vendor, "B")]).await.unwrap();
        let model = model(&server, vendor);
        for text in ["A", "B"] {
            assert_eq!(hear(&model).await.outcome.unwrap().text, text, "{vendor}");
        }
    }
}

#[tokio::test]
async fn a_server_that_answers_before_it_has_read_is_heard_or_gone() {
    for vendor in [Vendor::OpenAi, Vendor::Ollama] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            for patient in [true, false] {
                let (mut connection, _) = listener.accept().await.unwrap();
                let mut some = [0; 100];
                connection.read_exact(&mut some).await.unwrap();
                let refusal = "HTTP/1.1 413 -\r\ncontent-length: 2\r\nconnection: close\r\n\r\nNo";
                connection.write_all(refusal.as_bytes()).await.unwrap();
                if patient {
                    tokio::io::copy(&mut connection, &mut tokio::io::sink()).await.unwrap();
                }
            }
        });
        let model = Arc::new(builder(&url, vendor).build().unwrap());
        let long = || request(vec![Message::user("x".repeat(8 * 1024 * 1024))], Vec::new());
        for expected in [
            &[ModelErrorClass::ContextOverflow][..],
            &[ModelErrorClass::ContextOverflow, ModelErrorClass::Network],
        ] {
            let mut answer = Arc::clone(&model).respond(long());
            let error = in_time(answer.next()).await.unwrap().unwrap_err();
            assert!(expected.contains(&error.class), "{vendor}: {error}");
            assert!(in_time(answer.next()).await.is_none());
        }
        in_time(serving).await.unwrap();
    }
}

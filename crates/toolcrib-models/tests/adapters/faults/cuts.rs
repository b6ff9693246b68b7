//! Connections that break off, at every place.

use toolcrib_core::ModelErrorClass;
use toolcrib_models::Vendor;
use toolcrib_testbed::{CannedServer, Reply};

use super::{Answer, class, hear, heard_of, model, wire};

const TEXT: &str = "Ich schaue nach 👀.";

fn said() -> Answer {
    Answer::text(&["Ich schaue", " nach 👀", "."])
        .calling("call_a", "find_order", &["{\"id\"", ": 1042}"])
        .calling("call_b", "find_order", &["{\"id\": \"größer\"}"])
}

/// The ways in which a connection can end against the protocol.
fn breaks(stream: &[u8], vendor: Vendor) -> Vec<Reply> {
    let begun = wire::reply(vendor).piece(stream.to_vec());
    vec![
        begun.clone().cut(),
        begun.clone().reset(),
        begun.clone().content_length(stream.len() + 1).cut(),
        begun.content_length(usize::MAX / 4).reset(),
    ]
}

#[tokio::test]
async fn an_answer_that_breaks_off_says_so_wherever_that_is() {
    for vendor in Vendor::ALL {
        let frames = wire::frames(vendor, &said());
        let stream = frames.concat();
        // After the stop reason, no part of a response follows.
        let whole = stream.len() - wire::end(vendor, &said()).concat().len();
        let mut places = Vec::new();
        let mut begins = 0;
        for frame in &frames {
            places.extend([begins, begins + 1, begins + frame.len() / 2, begins + frame.len() - 1]);
            begins += frame.len();
        }
        let in_character = stream.find('👀').unwrap() + 2;
        for place in places.into_iter().chain([in_character]).filter(|place| *place <= whole) {
            for reply in breaks(&stream.as_bytes()[..place], vendor) {
                let heard = heard_of(vendor, reply).await;
                // Data may be lost by a reset, including the head.
                let classes = [ModelErrorClass::Incomplete, ModelErrorClass::Network];
                assert!(classes.contains(&class(&heard)), "{vendor} at {place}: {heard:?}");
                assert!(TEXT.starts_with(&heard.text), "{vendor} at {place}: {}", heard.text);
            }
            // The network is sound, and the server thinks that this is all.
            let ended = wire::reply(vendor).piece(stream.as_bytes()[..place].to_vec());
            let heard = heard_of(vendor, ended).await;
            let nothing = heard.text.is_empty() && class(&heard) == ModelErrorClass::Network;
            let broke_off = class(&heard) == ModelErrorClass::Incomplete;
            assert!(nothing || broke_off, "{vendor} at {place}: {heard:?}");
        }
    }
}

#[tokio::test]
async fn a_whole_answer_is_one_though_the_connection_breaks_behind_it() {
    for vendor in Vendor::ALL {
        let stream = wire::frames(vendor, &said()).concat();
        let cut = wire::reply(vendor).piece(stream.clone()).cut();
        let short = wire::reply(vendor).content_length(stream.len() + 1).piece(stream).cut();
        for reply in [cut, short] {
            let heard = heard_of(vendor, reply).await;
            let response = heard.outcome.unwrap_or_else(|error| panic!("{vendor}: {error}"));
            assert_eq!((&*response.text, response.calls.len()), (TEXT, 2), "{vendor}");
        }
    }
}

#[tokio::test]
async fn a_server_that_goes_away_before_it_answers_is_a_matter_of_the_network() {
    let heads = [
        "",
        "HTTP/1.1",
        "HTTP/1.1 200 OK\r\ncontent-ty",
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "SSH-2.0-OpenSSH_9.9\r\n",
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nx\0y: z\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
    ];
    for vendor in Vendor::ALL {
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(10_000));
        let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(10_000_000));
        for head in heads.map(str::to_owned).into_iter().chain([many, long]) {
            for reply in [Reply::nothing(), Reply::nothing().reset()] {
                let heard = heard_of(vendor, reply.piece(head.clone())).await;
                let beginning: String = head.chars().take(60).collect();
                assert_eq!(class(&heard), ModelErrorClass::Network, "{vendor}: {beginning:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_matter_of_the_network() {
    for vendor in Vendor::ALL {
        let server = CannedServer::start([]).await.unwrap();
        let model = model(&server, vendor);
        drop(server);
        // Its port is free again once its task has ended.
        tokio::task::yield_now().await;
        assert_eq!(class(&hear(&model).await), ModelErrorClass::Network, "{vendor}");
    }
}

#[tokio::test]
async fn chunks_that_are_no_chunks_end_the_answer() {
    for vendor in Vendor::ALL {
        let frame = wire::beginning(vendor).concat() + &wire::text(vendor, "Hi.");
        let media_type =
            if vendor == Vendor::Ollama { "application/x-ndjson" } else { "text/event-stream" };
        for chunk in
            ["zz\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "5\r\nHel", "\r\n", "1\r\nxx\r\n"]
        {
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: ";
            let sent = format!("{head}{media_type}\r\n\r\n{:x}\r\n{frame}\r\n{chunk}", frame.len());
            let heard = heard_of(vendor, Reply::nothing().piece(sent)).await;
            assert_eq!(class(&heard), ModelErrorClass::Incomplete, "{vendor} {chunk:?}");
            assert!("Hi.".starts_with(&heard.text), "{vendor}: {}", heard.text);
        }
    }
}

//! Reasoning between tags in an answer's text.

use std::sync::Arc;

use toolcrib_models::Vendor;
use toolcrib_testbed::CannedServer;

use super::{Answer, builder, hello, streamed, wire};
use crate::support::ask;

#[tokio::test]
async fn reasoning_between_tags_is_not_the_answer_and_can_be_switched_off() {
    let pieces = ["<th", "ink>h", "m</th", "ink>", "\n\n{\"x\"", ":1}"];
    for vendor in Vendor::ALL {
        let stream = || streamed(vendor, &wire::frames(vendor, &Answer::text(&pieces)));
        for (think_tags, text, reasoning) in [
            (None, "{\"x\":1}", "hm"),
            (Some(true), "{\"x\":1}", "hm"),
            (Some(false), "<think>hm</think>\n\n{\"x\":1}", ""),
        ] {
            let server = CannedServer::start([stream()]).await.unwrap();
            let mut builder = builder(&server.url(), vendor);
            if let Some(are_reasoning) = think_tags {
                builder = builder.think_tags(are_reasoning);
            }
            let heard = ask(&Arc::new(builder.build().unwrap()), hello()).await;
            let response = heard.outcome.unwrap();
            assert_eq!((&*response.text, &*heard.text), (text, text), "{vendor} {think_tags:?}");
            assert_eq!(heard.reasoning, reasoning, "{vendor} {think_tags:?}");
        }
    }
}

#[tokio::test]
async fn reasoning_without_an_opening_tag_is_not_the_answer() {
    for vendor in Vendor::ALL {
        let said = Answer::text(&["h", "m\n</th", "ink>\n\nHi", "."]).calling("a", "f", &["{}"]);
        let stream = streamed(vendor, &wire::frames(vendor, &said));
        let server = CannedServer::start([stream]).await.unwrap();
        let model = Arc::new(builder(&server.url(), vendor).build().unwrap());
        let response = ask(&model, hello()).await.outcome.unwrap();
        assert_eq!((&*response.text, response.calls.len()), ("Hi.", 1), "{vendor}");
    }
}

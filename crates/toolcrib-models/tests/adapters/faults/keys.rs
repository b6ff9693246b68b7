//! Servers that repeat the key. Their messages are shown, without the key.

use std::{error::Error, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::json;
use toolcrib_core::{ModelError, Secret};
use toolcrib_models::{Vendor, VendorModel};
use toolcrib_testbed::{CannedServer, Reply};

use super::{KEY, hear, in_time, model, shown_part, streamed, wire};

/// Fails if a part of the key is in any form of an error.
#[track_caller]
fn check(error: &ModelError) {
    let mut shown = format!("{error} {error:?} {error:#?}");
    let mut cause = error.source();
    while let Some(this) = cause {
        shown += &format!(" {this} {this:?}");
        cause = this.source();
    }
    assert_eq!(shown_part(&shown), None, "{shown}");
}

/// How a server may repeat it.
fn repeated() -> Vec<String> {
    vec![
        format!("Incorrect API key provided: {KEY}."),
        format!(
            "Incorrect API key provided: {}***{}. See https://example.com.",
            &KEY[..8],
            &KEY[24..]
        ),
        format!("key={KEY}&model=m"),
        format!("…{}…", &KEY[9..26]),
        format!("Authorization:\n\tBearer\u{a0}{KEY}"),
        format!("{}\u{0}{}", &KEY[..12], &KEY[12..]),
        KEY.to_ascii_lowercase(),
        KEY.to_ascii_uppercase(),
        format!("{}{KEY}", "x".repeat(985)),
        format!("<a href=\"https://example.com/{KEY}\">{KEY}</a>"),
    ]
}

#[tokio::test]
async fn a_refusal_that_repeats_the_key_does_not_show_it() {
    for vendor in Vendor::ALL {
        for words in repeated() {
            let in_header = format!("No; you sent {}", words.replace(char::is_control, ""));
            let replies = [
                Reply::json(401, &wire::error_body(vendor, &words)),
                Reply::new(500).header("content-type", "text/html").body(words.clone()),
                Reply::new(401).header("www-authenticate", &in_header).body(""),
                Reply::new(429).header("retry-after", &in_header).body(words.clone()),
                Reply::new(307).header("location", format!("https://example.com/?{KEY}")).body(""),
                Reply::new(200).header("content-type", &in_header).body(""),
                wire::reply(vendor).header("content-encoding", &in_header).body("x"),
                Reply::json(200, &wire::error_body(vendor, &words)),
                streamed(vendor, &[wire::text(vendor, "Hi"), wire::error(vendor, &words)]),
                // An unreadable part is shown as far as it describes the problem.
                streamed(
                    vendor,
                    &[wire::frame(
                        vendor,
                        &json!({ "type": "message_delta", "usage": { "input_tokens": words },
                        "choices": words, "candidates": words, "message": words }),
                    )],
                ),
                Reply::nothing().piece(format!("{words}\r\n\r\n")),
            ];
            let server = CannedServer::start(replies.to_vec()).await.unwrap();
            let model = model(&server, vendor);
            for _ in &replies {
                if let Err(error) = hear(&model).await.outcome {
                    check(&error);
                }
            }
            let server = CannedServer::start(replies).await.unwrap();
            let model = super::model(&server, vendor);
            for _ in 0..5 {
                if let Err(error) = in_time(model.list_models()).await {
                    check(&error);
                }
            }
        }
    }
}

#[tokio::test]
async fn a_short_key_is_hidden_where_it_is_a_word() {
    let words = "Tests of test-model say <test>, a `test` and latest.";
    let server = CannedServer::start([Reply::new(401).body(words)]).await.unwrap();
    let model = super::builder(&server.url(), Vendor::OpenAi).key(Secret::new("test"));
    let error = hear(&Arc::new(model.build().unwrap())).await.outcome.unwrap_err();
    let said = "it says: Tests of test-model say [redacted] a [redacted] and latest.";
    assert!(error.message.ends_with(said), "{error}");
}

#[tokio::test]
async fn the_key_goes_where_it_belongs_and_into_nothing_else() {
    for vendor in Vendor::ALL {
        let server = CannedServer::start([Reply::new(401).body("No.")]).await.unwrap();
        let model = model(&server, vendor);
        hear(&model).await;
        let request = server.recorder().last().unwrap();
        let carriers: Vec<_> = request
            .headers
            .iter()
            .filter(|(_, value)| value.to_str().is_ok_and(|value| value.contains(KEY)))
            .map(|(name, _)| name.as_str())
            .collect();
        let expected = match vendor {
            Vendor::Anthropic => "x-api-key",
            Vendor::Gemini => "x-goog-api-key",
            _ => "authorization",
        };
        assert_eq!(carriers, [expected], "{vendor}");
        let body = String::from_utf8_lossy(&request.body);
        let encoded = BASE64_STANDARD.encode(KEY);
        for place in [&*request.path_and_query, &body, &format!("{model:?}")] {
            assert!(shown_part(place).is_none() && !place.contains(&encoded), "{vendor}: {place}");
        }
    }
}

#[test]
fn a_key_goes_over_the_wire_in_the_clear_within_this_machine_only() {
    let built = |url: &str| {
        let model = VendorModel::builder(Vendor::OpenAi, "m").base_url(url).key(Secret::new(KEY));
        model.build().map(drop).map_err(|error| error.to_string())
    };
    for url in [
        "https://example.com",
        "http://localhost:1",
        "http://127.0.0.1",
        "http://127.9.9.9",
        "http://[::1]",
        "http://[::ffff:127.0.0.1]",
    ] {
        assert_eq!(built(url), Ok(()), "{url}");
    }
    for (url, problem) in [
        ("http://example.com", "which would send the key unencrypted"),
        ("http://localhost.example.com", "which would send the key unencrypted"),
        // Not every system knows that it is this machine.
        ("http://models.localhost", "which would send the key unencrypted"),
        ("http://10.0.0.1", "which would send the key unencrypted"),
        ("http://[::ffff:10.0.0.1]", "which would send the key unencrypted"),
        ("https://example.com/v1\nX: y", "control characters"),
        ("https://user:pass@example.com", "a user or a password"),
        ("https://example.com?key=x", "a query"),
        ("https://example.com/v1#x", "a fragment"),
        ("ftp://example.com", "ftp:"),
    ] {
        let error = built(url).unwrap_err();
        assert!(error.contains(problem), "{url}: {error}");
        assert_eq!(shown_part(&error), None);
    }
}

#[test]
fn a_models_name_leads_nowhere_else() {
    for name in ["../../files", "models/../x", ".", "a\nb", "a b"] {
        let error = VendorModel::builder(Vendor::Gemini, name).build().unwrap_err();
        assert!(error.to_string().contains("is not a valid model name"), "{name}: {error}");
    }
    for name in ["tunedModels/mine", "qwen3:8b", "org/model-1.5", "..."] {
        VendorModel::builder(Vendor::Gemini, name).build().unwrap();
    }
}

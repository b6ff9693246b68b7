//! The parts of a result: in their order, and each once.

use serde_json::{Value, json};
use toolcrib_core::unfence;
use toolcrib_engine::Limits;

use super::{
    asks::{End, client, gateway_of, initialized},
    support::engine,
};

const CAP: usize = 700;

/// A client, and its server.
async fn both() -> (End, End) {
    let limits = Limits { batch_result_chars: CAP, ..Limits::default() };
    let (gateway, mut connections) = gateway_of(engine().limits(limits));
    let mut client = client(&gateway, &json!({})).await;
    let mut server = connections.recv().await.unwrap();
    server.greeted().await;
    initialized(&mut client).await;
    (client, server)
}

/// The kinds and texts of the content that a client receives of a result.
async fn through(ends: &mut (End, End), result: Value) -> Vec<(String, String)> {
    let (client, server) = ends;
    let params = json!({ "name": "mcp__s__work", "arguments": {} });
    client.send(json!({ "id": 1, "method": "tools/call", "params": params })).await;
    let call = server.heard().await;
    server.answer(&call, result).await;
    let answer = client.read().await;
    let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let part = |block: &Value| {
        let text = block["text"].as_str().unwrap_or_default();
        (block["type"].as_str().unwrap().to_owned(), unfence(text).0.to_owned())
    };
    content.iter().map(part).collect()
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image() -> Value {
    json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" })
}

fn kinds(content: &[(String, String)]) -> Vec<&str> {
    content.iter().map(|(kind, _)| kind.as_str()).collect()
}

/// It came before the image.
#[tokio::test]
async fn data_in_place_of_a_text_comes_after_the_parts_of_the_server() {
    let mut ends = both().await;
    let result = json!({ "content": [image()], "structuredContent": { "a": 1 } });
    let content = through(&mut ends, result).await;
    assert_eq!(kinds(&content), ["image", "text"]);
    assert_eq!(content[1].1, r#"{"a":1}"#);
}

/// Its metadata took the room of the parts after it, which were lost.
#[tokio::test]
async fn a_block_with_large_metadata_displaces_no_other_block() {
    let mut ends = both().await;
    for chars in [CAP - 10, CAP + 10] {
        let first = json!({ "type": "text", "text": "one", "_meta": { "k": "x".repeat(chars) } });
        let result = json!({ "content": [first, image(), text("two")] });
        let content = through(&mut ends, result).await;
        assert_eq!(kinds(&content), ["text", "image", "text"], "{chars}");
        assert_eq!((&*content[0].1, &*content[2].1), ("one", "two"));
    }
}

/// The marker came before all parts, if the cut was between two texts.
#[tokio::test]
async fn omitted_text_is_marked_where_it_was_cut() {
    let mut ends = both().await;
    for chars in (CAP / 4)..CAP {
        let long = "x".repeat(chars);
        let content = json!([text(&long), image(), text(&"y".repeat(400)), image()]);
        let content = through(&mut ends, json!({ "content": content })).await;
        let first = content[0].1.split('\n').next().unwrap();
        assert!(first.starts_with('x') && long.starts_with(first), "{chars}: {content:?}");
        let images = kinds(&content).into_iter().filter(|kind| *kind == "image").count();
        let marked = content.iter().filter(|(_, text)| text.contains("[truncated")).count();
        let is_whole = content.iter().any(|(_, text)| text.ends_with(&"y".repeat(400)));
        assert_eq!((images, marked), (2, usize::from(!is_whole)), "{chars}: {content:?}");
    }
}

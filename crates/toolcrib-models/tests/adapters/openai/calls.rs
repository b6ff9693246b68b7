//! Calls in fragments.

use super::*;

#[tokio::test]
async fn calls_are_put_together_however_servers_take_them_apart() {
    let f = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let more = |arguments: &str| json!({ "arguments": arguments });
    let two = json!([["a", "f", "{\"x\":1}"], ["b", "g", "{\"y\":2}"]]);
    let cases = [
        // As OpenAI does, one after the other and in turn.
        (
            vec![
                json!([{ "index": 0, "id": "a", "function": f("f", json!("")) }]),
                json!([{ "index": 0, "function": more("{\"x\"") }, { "index": 0, "function": more(":1}") }]),
                json!([{ "index": 1, "id": "b", "function": f("g", json!("")) }]),
                json!([{ "index": 1, "function": more("{\"y\":2}") }]),
            ],
            two.clone(),
        ),
        (
            vec![
                json!([{ "index": 0, "id": "a", "function": f("f", json!("")) }, { "index": 1, "id": "b", "function": f("g", json!("")) }]),
                json!([{ "index": 1, "function": more("{\"y\":") }]),
                json!([{ "index": 0, "function": more("{\"x\":1}") }, { "index": 1, "function": more("2}") }]),
            ],
            two.clone(),
        ),
        // All numbered 0, or not at all, whole or in pieces.
        (
            vec![
                json!([{ "index": 0, "id": "a", "function": f("f", json!("{\"x\":1}")) }]),
                json!([{ "index": 0, "id": "b", "function": f("g", json!("{\"y\"")) }]),
                json!([{ "index": 0, "function": more(":2}") }]),
            ],
            two.clone(),
        ),
        (
            vec![
                json!([{ "id": "a", "function": f("f", json!("{\"x\":1}")) }, { "id": "b", "function": f("g", json!("")) }]),
                json!([{ "function": more("{\"y\"") }]),
                json!([{ "function": more(":2}") }]),
            ],
            two.clone(),
        ),
        // Id and name in each fragment.
        (
            vec![
                json!([{ "index": 0, "id": "a", "function": f("f", json!("{\"x\"")) }]),
                json!([{ "index": 0, "id": "a", "function": f("f", json!(":1}")) }]),
                json!([{ "index": 1, "id": "b", "function": f("g", json!("{\"y\"")) }]),
                json!([{ "index": 0, "id": "a", "function": f("f", json!("")) }]),
                json!([{ "index": 1, "id": "b", "function": f("g", json!(":2}")) }]),
            ],
            two.clone(),
        ),
        (
            vec![
                json!([{ "id": "a", "function": f("f", json!("{\"x\"")) }]),
                json!([{ "id": "b", "function": f("g", json!("{\"y\"")) }]),
                json!([{ "id": "a", "function": f("f", json!(":1}")) }]),
                json!([{ "id": "b", "function": more(":2}") }]),
            ],
            two.clone(),
        ),
        // A new id for each fragment.
        (
            vec![
                json!([{ "index": 0, "id": "a", "function": f("f", json!("{\"x\"")) }]),
                json!([{ "index": 0, "id": "a2", "function": more(":1}") }]),
                json!([{ "index": 1, "id": "b", "function": f("g", json!("{\"y\":2}")) }]),
            ],
            two.clone(),
        ),
        // The same id for all.
        (
            vec![
                json!([{ "index": 0, "id": "a", "function": f("f", json!("{\"x\":1}")) }]),
                json!([{ "index": 1, "id": "a", "function": f("f", json!("{\"x\":2}")) }]),
                json!([{ "id": "a", "function": f("f", json!("{\"x\":3}")) }]),
            ],
            json!([["a", "f", "{\"x\":1}"], ["a", "f", "{\"x\":2}"], ["a", "f", "{\"x\":3}"]]),
        ),
        // No ids: the caller's loop assigns them.
        (
            vec![
                json!([{ "index": 0, "function": f("f", json!("{\"x\":1}")) }]),
                json!([{ "index": 0, "function": f("f", json!("{\"x\":2}")) }]),
                json!([{ "index": 0, "id": "", "function": f("g", json!("")) }]),
                json!([{ "index": 0, "function": f("g", json!("{\"y\":2}")) }]),
                json!([{ "function": f("g", json!("{}")) }]),
            ],
            json!([
                ["", "f", "{\"x\":1}"],
                ["", "f", "{\"x\":2}"],
                ["", "g", "{\"y\":2}"],
                ["", "g", "{}"]
            ]),
        ),
        // Arguments as data, missing, or null; odd numbers; what comes late or in pieces.
        (
            vec![
                json!([{ "index": null, "id": "a", "type": "function", "function": f("f", json!({ "x": 1 })) }]),
                json!([{ "index": -1, "id": "b", "function": { "name": "g" } }]),
                json!([{ "id": "c", "function": f("h", json!(null)) }, {}, { "function": null }, null, 7]),
            ],
            json!([["a", "f", "{\"x\":1}"], ["b", "g", "{}"], ["c", "h", "{}"]]),
        ),
        (
            vec![
                json!([{ "index": 3, "function": { "arguments": "{\"x\"" } }]),
                json!([{ "index": 3, "id": "a", "function": { "name": "find_" } }]),
                json!([{ "index": 3, "function": { "name": "order", "arguments": ":1}" } }]),
            ],
            json!([["a", "find_order", "{\"x\":1}"]]),
        ),
        // Cut by the limit of tokens: passed on as it is.
        (
            vec![json!([{ "index": 0, "id": "a", "function": f("f", json!("{\"x\":")) }])],
            json!([["a", "f", "{\"x\":"]]),
        ),
    ];
    for (position, (fragments, expected)) in cases.into_iter().enumerate() {
        let deltas: Vec<_> = fragments.iter().map(calls).collect();
        let response = answered(&stream(&deltas, "tool_calls")).await;
        assert_eq!(said(&response), expected, "case {position}");
    }
}

//! Parts that come in pieces and as a whole are read once, and parts that come only as a whole are
//! read.

use super::*;

const REASONING: &str = "Hm, größer.";
const TEXT: &str = "Ich sehe 👀 nach.";
const ARGUMENTS: &str = "{\"id\":1042}";

/// The events that a server may send for the same answer. Some servers omit each of them.
fn groups() -> [Vec<String>; 6] {
    let thought = json!({ "type": "reasoning", "id": "rs_0", "encrypted_content": "gAAA",
        "summary": [{ "type": "summary_text", "text": REASONING }] });
    let said = message("msg_1", TEXT);
    let called = call("fc_2", "call_1", ARGUMENTS);
    let blank = [
        json!({ "type": "reasoning", "id": "rs_0", "summary": [] }),
        message("msg_1", ""),
        call("fc_2", "call_1", ""),
    ];
    let pieces = |whole: &str, piece: &dyn Fn(&str) -> String| {
        let mut at = whole.len() / 2;
        while !whole.is_char_boundary(at) {
            at += 1;
        }
        [&whole[..at], "", &whole[at..]].map(piece).concat()
    };
    let part = |kind: &str, index: u64, part: Value| {
        let fields = json!({ "output_index": index, "part": part });
        event(&format!("response.{kind}"), fields)
    };
    let output_text =
        |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
    let summary_text = |text: &str| json!({ "type": "summary_text", "text": text });
    let done_of = |kind: &str, index: u64, key: &str, text: &str| {
        event(&format!("response.{kind}.done"), json!({ "output_index": index, key: text }))
    };
    [
        (0..).zip(&blank).map(|(index, item)| added(index, item)).collect(),
        vec![
            part("reasoning_summary_part.added", 0, summary_text("")),
            part("content_part.added", 1, output_text("")),
            String::new(),
        ],
        vec![
            pieces(REASONING, &|piece| summary(0, 0, piece)),
            pieces(TEXT, &|piece| text(1, piece)),
            pieces(ARGUMENTS, &|piece| arguments(2, piece)),
        ],
        vec![
            done_of("reasoning_summary_text", 0, "text", REASONING),
            done_of("output_text", 1, "text", TEXT),
            done_of("function_call_arguments", 2, "arguments", ARGUMENTS),
        ],
        vec![
            part("reasoning_summary_part.done", 0, summary_text(REASONING)),
            part("content_part.done", 1, output_text(TEXT)),
            String::new(),
        ],
        vec![done(0, &thought), done(1, &said), done(2, &called)],
    ]
}

/// The whole response, as in its last event.
fn output() -> Value {
    json!([
        { "type": "reasoning", "id": "rs_0", "encrypted_content": "gAAA",
          "summary": [{ "type": "summary_text", "text": REASONING }] },
        message("msg_1", TEXT),
        call("fc_2", "call_1", ARGUMENTS),
    ])
}

#[tokio::test]
async fn whatever_a_server_leaves_out_the_answer_is_the_same() {
    let groups = groups();
    let mut streams = Vec::new();
    for sent in 0..1_u32 << groups.len() {
        // Item by item, as servers do.
        let items: String = (0..3)
            .flat_map(|item| groups.iter().enumerate().map(move |(at, group)| (at, &group[item])))
            .filter(|(at, _)| sent & (1 << at) != 0)
            .map(|(_, events)| events.as_str())
            .collect();
        let has_whole_items = sent & (1 << 5) != 0;
        let mut outputs = vec![output()];
        if has_whole_items {
            outputs.extend([json!([]), json!(null)]);
        }
        for output in outputs {
            streams.push(format!("{}{items}{}", created(), completed(&output)));
        }
    }
    let server = Server::start(streams.clone().into_iter().map(Reply::events)).await;
    let model = Arc::new(model(&server, "test-model").build().unwrap());
    for stream in streams {
        let heard = ask(&model, hello()).await;
        assert_eq!((&*heard.text, &*heard.reasoning), (TEXT, REASONING), "{stream}");
        let response = heard.outcome.unwrap();
        assert_eq!(said(&response), json!([["call_1", "find_order", ARGUMENTS]]), "{stream}");
        let kept = &response.vendor.as_ref().unwrap().content["items"];
        assert_eq!(kept[0]["encrypted_content"], "gAAA", "{stream}");
        let expected = json!([kept[0], { "type": "message", "id": "msg_1", "bytes": TEXT.len() },
            { "type": "function_call", "id": "fc_2" }]);
        assert_eq!(*kept, expected, "{stream}");
    }
}

#[tokio::test]
async fn items_are_known_though_a_server_gives_them_other_ids_each_time() {
    let stream = [
        added(0, &message("msg_a", "")),
        event(
            "response.output_text.delta",
            json!({ "item_id": "msg_b", "output_index": 0, "delta": "Hi." }),
        ),
        done(0, &message("msg_c", "Hi.")),
        done(1, &call("fc_d", "call_1", "{}")),
        completed(&json!([thought("rs_x"), message("msg_e", "Hi."), call("fc_f", "call_1", "{}")])),
    ]
    .concat();
    let heard = heard(&stream).await;
    assert_eq!(heard.text, "Hi.");
    let response = heard.outcome.unwrap();
    assert_eq!((&*response.text, response.calls.len()), ("Hi.", 1));
}

#[tokio::test]
async fn pieces_without_numbers_belong_to_the_item_of_their_id_else_to_the_last() {
    let piece = |id: &str, delta: &str| {
        event("response.function_call_arguments.delta", json!({ "item_id": id, "delta": delta }))
    };
    let begun = |id: &str, call_id: &str| {
        event("response.output_item.added", json!({ "item": call(id, call_id, "") }))
    };
    let stream = [
        begun("fc_1", "call_1"),
        begun("fc_2", "call_2"),
        piece("fc_1", "{\"id\":1}"),
        piece("", "{\"id\":"),
        piece("fc_2", "2}"),
        completed(&json!([])),
    ]
    .concat();
    let expected =
        json!([["call_1", "find_order", "{\"id\":1}"], ["call_2", "find_order", "{\"id\":2}"],]);
    assert_eq!(said(&answered(&stream).await), expected);
}

#[tokio::test]
async fn what_was_shown_stays_where_a_whole_is_not_its_pieces() {
    let other = message("msg_0", "Something else.");
    let stream = [text(0, "Hi."), done(0, &other), completed(&json!([other]))].concat();
    let heard = heard(&stream).await;
    assert_eq!(heard.text, "Hi.");
    assert_eq!(heard.outcome.unwrap().text, "Hi.");
}

#[tokio::test]
async fn reasoning_that_a_server_shows_itself_is_heard() {
    let piece = |at: u64, delta: &str| {
        let fields = json!({ "output_index": 0, "content_index": at, "delta": delta });
        event("response.reasoning_text.delta", fields)
    };
    let item = json!({ "type": "reasoning", "id": "rs_0", "summary": [], "content": [
        { "type": "reasoning_text", "text": "Hm, so." }, { "type": "reasoning_text", "text": "Well." },
    ]});
    let stream = [
        piece(0, "Hm, "),
        piece(0, "so."),
        done(0, &item),
        saying("Hi.").replace("\"output_index\":0", "\"output_index\":1"),
    ];
    let heard = heard(&stream.concat()).await;
    assert_eq!(heard.reasoning, "Hm, so.\n\nWell.");
    assert_eq!(heard.text, "Hi.");
    let kept = heard.outcome.unwrap().vendor.unwrap();
    assert_eq!(kept.content["items"][0], item);
}

#[tokio::test]
async fn calls_that_share_a_number_are_all_made() {
    let delta = |id: &str, delta: &str| {
        let fields = json!({ "item_id": id, "output_index": 0, "delta": delta });
        event("response.function_call_arguments.delta", fields)
    };
    let two = || [call("fc_1", "call_1", "{\"id\":1}"), call("fc_2", "call_2", "{\"id\":2}")];
    let begun = || [call("fc_1", "call_1", ""), call("fc_2", "call_2", "")];
    let each = |event: fn(u64, &Value) -> String, of: [Value; 2]| of.map(|item| event(0, &item));
    let (added_both, done_both) = (each(added, begun()), each(done, two()));
    let streams = [
        done_both.concat(),
        [done_both.concat(), done_both.concat()].concat(),
        [&added_both[0], &done_both[0], &added_both[1], &done_both[1]].map(String::as_str).concat(),
        [
            added_both.concat(),
            [delta("fc_1", "{\"id\""), delta("fc_2", "{\"id\":2}"), delta("fc_1", ":1}")].concat(),
            done_both.concat(),
        ]
        .concat(),
        // Without ids of items, and with another one in each event.
        done_both.concat().replace("\"fc_1\"", "\"\"").replace("\"fc_2\"", "\"\""),
        [added_both.concat(), done_both.concat().replace("\"fc_", "\"other_")].concat(),
    ];
    let expected =
        json!([["call_1", "find_order", "{\"id\":1}"], ["call_2", "find_order", "{\"id\":2}"]]);
    for stream in streams {
        for output in [json!([]), json!(two()), json!([two(), two()].concat())] {
            let stream = format!("{}{stream}{}", created(), completed(&output));
            assert_eq!(said(&answered(&stream).await), expected, "{stream}");
        }
    }
}

#[tokio::test]
async fn texts_of_messages_that_share_a_number_are_all_read() {
    let stream = [
        done(0, &message("msg_1", "One. ")),
        done(0, &message("msg_2", "Two.")),
        completed(&json!([])),
    ]
    .concat();
    assert_eq!(answered(&stream).await.text, "One. Two.");
}

#[tokio::test]
async fn a_whole_response_instead_of_a_stream_is_read() {
    let output =
        [message("msg_1", "Hi."), call("fc_1", "call_1", "{}"), call("fc_2", "call_2", "{}")];
    for (status, details, stop) in [
        ("completed", json!(null), StopReason::Finished),
        ("incomplete", json!({ "reason": "max_output_tokens" }), StopReason::MaxTokens),
    ] {
        let whole = json!({ "id": "resp_1", "object": "response", "status": status, "error": null,
            "incomplete_details": details, "output": output, "usage": usage() });
        let reply = Reply::json(200, &whole.to_string());
        let server = Server::start([reply]).await;
        let model = Arc::new(model(&server, "test-model").build().unwrap());
        let response = ask(&model, hello()).await.outcome.unwrap();
        assert_eq!((&*response.text, response.stop), ("Hi.", stop));
        assert_eq!(
            said(&response),
            json!([["call_1", "find_order", "{}"], ["call_2", "find_order", "{}"]])
        );
    }
}

//! Content that goes back with a message.

use super::*;

fn thought_back() -> Value {
    json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" })
}

/// Replaces the server's address in kept content.
const HERE: &str = "HERE";

/// A message that was kept, as it is sent to a model of that name.
async fn sent_back(name: &str, message: Message) -> Vec<Value> {
    let server = Server::start([Reply::events(saying("Hi."))]).await;
    let Message::Assistant { text, calls, vendor } = message else { panic!("an assistant's") };
    let vendor = vendor.map(|kept| {
        let content = kept.content.to_string().replace(HERE, &base_url(&server));
        let vendor = Arc::clone(&kept.vendor);
        Arc::new(VendorContent { vendor, content: serde_json::from_str(&content).unwrap() })
    });
    let results: Vec<_> = calls.iter().map(|call| result(&call.id, "1")).collect();
    let message = Message::Assistant { text, calls, vendor };
    let messages = [vec![Message::user("Hello."), message], results.clone()].concat();
    let model = Arc::new(model(&server, name).build().unwrap());
    ask(&model, request(messages, vec![find_order()])).await.outcome.unwrap();
    let Value::Array(mut found) = server.last().json()["input"].clone() else { panic!("a list") };
    found.truncate(found.len() - results.len());
    found.split_off(1)
}

/// A model's answer, in the form that is sent back.
async fn there_and_back(stream: String) -> Vec<Value> {
    let server = Server::start([stream, saying("Hi.")].map(Reply::events)).await;
    let model = Arc::new(model(&server, "gpt-6.2-sol").build().unwrap());
    let ModelResponse { text, calls, vendor, .. } = ask(&model, hello()).await.outcome.unwrap();
    let results: Vec<_> = calls.iter().map(|call| result(&call.id, "1")).collect();
    let said = Message::Assistant { text: text.into(), calls, vendor };
    let messages = [vec![Message::user("Hello."), said], results.clone()].concat();
    ask(&model, request(messages, vec![find_order()])).await.outcome.unwrap();
    let Value::Array(mut found) = server.last().json()["input"].clone() else { panic!("a list") };
    found.truncate(found.len() - results.len());
    found.split_off(1)
}

#[tokio::test]
async fn an_answer_goes_back_as_it_came() {
    let expected = [
        json!({ "type": "reasoning", "id": "rs_0", "encrypted_content": "gAAA", "summary": [
            { "type": "summary_text", "text": "First the order; größer." },
            { "type": "summary_text", "text": "Then both." },
        ]}),
        message("msg_1", "Ich schaue nach 👀."),
        call("fc_2", "call_1", "{\"id\": 1042}"),
        call("fc_3", "call_2", "{}"),
    ];
    assert_eq!(there_and_back(rich()).await, expected);
}

#[tokio::test]
async fn the_order_of_items_and_their_phases_are_kept() {
    let mut says = message("msg_1", "First. ");
    says["phase"] = json!("commentary");
    let mut ends = message("msg_4", "Then.");
    ends["phase"] = json!("final_answer");
    let compaction = json!({ "type": "compaction", "id": "cmp_5", "encrypted_content": "gBBB" });
    let items = [
        thought("rs_0"),
        says,
        call("fc_2", "call_1", "{\"id\":1}"),
        thought("rs_3"),
        compaction,
        ends,
    ];
    let each: String = (0..).zip(&items).map(|(index, item)| done(index, item)).collect();
    let stream = format!("{}{each}{}", created(), completed(&json!([])));
    assert_eq!(there_and_back(stream).await, items);
}

#[tokio::test]
async fn it_goes_back_only_to_its_model_and_where_it_fits() {
    let kept = |items: Value| json!({ "server": HERE, "model": "m", "items": items });
    let message = json!({ "type": "message", "id": "msg_1", "bytes": 3 });
    let call = json!({ "type": "function_call", "id": "fc_1" });
    let fits = kept(json!([thought_back(), message, call]));
    let mut elsewhere = fits.clone();
    elsewhere["server"] = json!("https://api.openai.com/v1");
    let two_texts = kept(json!([message, thought_back(), message, call]));
    let said = |text: &str, vendor: &str, content: &Value| {
        with_vendor(assistant(text, &["call_1"]), vendor, content.clone())
    };
    let cases = [
        ("m", said("So.", "openai", &fits), true),
        // It was redacted since.
        ("m", said("So, [redacted].", "openai", &fits), true),
        ("m", said("So.So.", "openai", &two_texts), true),
        ("m", said("So.", "openai", &two_texts), false),
        ("other", said("So.", "openai", &fits), false),
        ("m", said("So.", "openai", &elsewhere), false),
        ("m", said("So.", "anthropic", &fits), false),
        ("m", said("So.", "openai", &kept(json!([thought_back(), message]))), false),
        ("m", said("So.", "openai", &kept(json!([thought_back(), call]))), false),
        (
            "m",
            said("So.", "openai", &kept(json!([thought_back(), { "type": "new" }, message, call]))),
            false,
        ),
        // That of Chat Completions.
        (
            "m",
            said("So.", "openai", &json!({ "reasoning_content": "Hm.", "calls": [null] })),
            false,
        ),
        ("m", said("So.", "openai", &json!(null)), false),
    ];
    for (name, message, goes_back) in cases {
        let Message::Assistant { text, .. } = &message else { panic!("an assistant's") };
        let text = text.clone();
        let found = sent_back(name, message.clone()).await;
        assert_eq!(found.contains(&thought_back()), goes_back, "{name} {message:?}");
        let calls: Vec<_> = found.iter().filter(|item| item["type"] == "function_call").collect();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0]["call_id"], "call_1");
        assert_eq!(calls[0].get("id").is_some(), goes_back, "ids go with what belongs to them");
        let texts: String = found
            .iter()
            .filter_map(|item| match &item["content"] {
                Value::String(text) => Some(text.as_str()),
                content => content[0]["text"].as_str(),
            })
            .collect();
        assert_eq!(texts, *text);
    }
    // And Chat Completions ignore it.
    let messages = vec![said("So.", "openai", &fits), result("call_1", "1")];
    let found = super::super::sent(request(messages, vec![find_order()])).await;
    let keys: Vec<_> = found["messages"][1].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["role", "content", "tool_calls"]);
}

#[tokio::test]
async fn what_was_thought_is_followed_by_what_came_of_it_or_left_out() {
    let content = json!({ "server": HERE, "model": "m", "items": [
        { "type": "message", "id": "msg_1", "phase": "commentary", "bytes": 3 }, thought_back(),
    ]});
    let found = sent_back("m", with_vendor(assistant("So.", &[]), "openai", content)).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["phase"], "commentary");
    let content = json!({ "server": HERE, "model": "m", "items": [thought_back()] });
    let found = sent_back("m", with_vendor(assistant("", &[]), "openai", content)).await;
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test]
async fn there_is_something_to_keep_only_if_something_would_be_lost() {
    let mut phased = message("msg_0", "Hi.");
    phased["phase"] = json!("final_answer");
    let mut with_nulls = thought("rs_0");
    with_nulls["status"] = json!(null);
    let unreadable =
        json!({ "type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": null });
    let open = json!({ "type": "reasoning", "id": "rs_0", "summary": [],
        "content": [{ "type": "reasoning_text", "text": "Hm." }] });
    let hi = message("msg_1", "Hi.");
    let cases = [
        (json!([hi]), None),
        (json!([call("fc_0", "call_1", "{}")]), None),
        (json!([unreadable, hi]), None),
        (json!([{ "type": "web_search_call", "id": "ws_0" }, hi]), None),
        (
            json!([phased]),
            Some(
                json!([{ "type": "message", "id": "msg_0", "phase": "final_answer", "bytes": 3 }]),
            ),
        ),
        (
            json!([with_nulls, hi]),
            Some(json!([thought("rs_0"), { "type": "message", "id": "msg_1", "bytes": 3 }])),
        ),
        (json!([open, hi]), Some(json!([open, { "type": "message", "id": "msg_1", "bytes": 3 }]))),
    ];
    for (output, expected) in cases {
        let kept = answered(&completed(&output)).await.vendor;
        let kept = kept.map(|kept| (kept.vendor.to_string(), kept.content["items"].clone()));
        let expected = expected.map(|items| ("openai".to_owned(), items));
        assert_eq!(kept, expected, "{output}");
    }
}

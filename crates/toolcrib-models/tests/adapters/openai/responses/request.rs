//! Requests.

use super::*;

#[tokio::test]
async fn a_rich_conversation_is_sent_as_the_vendor_takes_it() {
    let messages = vec![
        Message::user("Which orders are there?"),
        assistant("I look.", &["call_1", "call_2"]),
        result_with(
            "call_1",
            "One.\n[image image/png, 67 bytes]",
            false,
            vec![ContentBlock::image("image/png", PNG)],
        ),
        result_with("call_2", "no such order", true, Vec::new()),
        assistant("", &["call_3"]),
        result("call_3", ""),
        assistant("Order 1.", &[]),
        Message::user("Und größere?"),
    ];
    let all = tool("list_orders", "All orders.", json!({ "type": "object" }));
    let mut asked = request(messages, vec![all, find_order()]);
    asked.tool_choice = ToolChoice::Tool(ToolName::new("list_orders").unwrap());
    let set = |builder: VendorModelBuilder| builder.temperature(0.5).max_output_tokens(100);
    let seen = sent_by(asked, "test-model", set).await;

    assert_eq!(seen.line(), "POST /v1/responses");
    assert_eq!(seen.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("accept"), Some("text/event-stream"));
    insta::assert_snapshot!(serde_json::to_string_pretty(&seen.json()).unwrap());
}

#[tokio::test]
async fn settings_are_said_in_the_vendors_words() {
    type Set = fn(VendorModelBuilder) -> VendorModelBuilder;
    let include = json!(["reasoning.encrypted_content"]);
    let find_order = ToolChoice::Tool(ToolName::new("find_order").unwrap());
    let cases: [(&str, Set, ToolChoice, Value); 7] = [
        ("gpt-6.2-sol", |b| b, ToolChoice::Auto, json!({ "include": include })),
        (
            "gpt-6.2-sol",
            |b| b.max_output_tokens(99),
            ToolChoice::None,
            json!({ "include": include, "max_output_tokens": 99, "tool_choice": "none" }),
        ),
        (
            "m",
            |b| b.temperature(0.0),
            ToolChoice::Required,
            json!({ "include": include, "temperature": 0.0, "tool_choice": "required" }),
        ),
        (
            "gpt-6-astra",
            |b| b.reasoning(ReasoningEffort::High),
            find_order,
            json!({ "include": include, "reasoning": { "effort": "high" },
                "tool_choice": { "type": "function", "name": "find_order" } }),
        ),
        (
            "m",
            |b| b.clear_above(50_000),
            ToolChoice::Auto,
            json!({ "include": include,
                "context_management": [{ "type": "compaction", "compact_threshold": 50_000 }] }),
        ),
        // Tools and reasoning go together here.
        ("gpt-6-luna", |b| b, ToolChoice::Auto, json!({ "include": include })),
        // These refuse a request for their reasoning.
        ("gpt-4.1", |b| b, ToolChoice::Auto, json!({})),
    ];
    for (name, set, tool_choice, expected) in cases {
        let seen = sent_by(ModelRequest { tool_choice, ..hello() }, name, set).await;
        let mut found = seen.json();
        assert_eq!(found["model"], name);
        assert_eq!((&found["store"], &found["stream"]), (&json!(false), &json!(true)));
        let always =
            ["model", "stream", "store", "prompt_cache_key", "tools", "instructions", "input"];
        found.as_object_mut().unwrap().retain(|key, _| !always.contains(&key.as_str()));
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn without_tools_and_system_text_nothing_is_said_of_them() {
    let mut asked = request(vec![Message::user("Hello.")], Vec::new());
    asked.system = "".into();
    asked.tool_choice = ToolChoice::Required;
    let mut found = sent_by(asked, "gpt-4o", |builder| builder).await.json();
    assert!(found.as_object_mut().unwrap().remove("prompt_cache_key").is_some());
    assert_eq!(
        found,
        json!({
            "model": "gpt-4o", "stream": true, "store": false,
            "input": [{ "role": "user", "content": "Hello." }],
        })
    );
}

#[tokio::test]
async fn a_schema_is_not_made_strict_and_its_dialect_is_that_of_chat_completions() {
    let schema = json!({
        "type": "object", "properties": { "zip": { "type": "string", "pattern": "^[0-9]+$" } },
        "oneOf": [{ "required": ["zip"] }],
    });
    let asked =
        || request(vec![Message::user("Hello.")], vec![tool("find", "Finds.", schema.clone())]);
    let flat = sent(asked()).await["tools"][0].clone();
    let nested = super::super::sent(asked()).await["tools"][0].clone();
    let mut expected = nested["function"].clone();
    expected["type"] = json!("function");
    expected["strict"] = json!(false);
    assert_eq!(flat, expected);
    assert!(flat["parameters"].get("oneOf").is_none());
}

#[tokio::test]
async fn what_the_vendor_would_refuse_is_sent_as_something_that_it_takes() {
    let call = |id: &str, name: &str, text: &str| ToolCall::unparsed(id, name, text);
    let long = "x".repeat(100);
    let calls = [
        call("call_1", "find_order", "{\"b\": 1e3,\"a\":2.50}"),
        call("call_2", "find order?", "{\"id\": 10"),
        call(&long, "", "null"),
    ];
    let messages = vec![
        // An empty message.
        Message::assistant("", []),
        Message::assistant("", calls),
        result("call_1", "1"),
        result("call_2", "2"),
        result(&long, "3"),
    ];
    let found = input(messages).await;
    let of = |at: usize, key: &str| found[at][key].as_str().unwrap().to_owned();
    assert_eq!(found.as_array().unwrap().len(), 6);
    assert_eq!([of(0, "name"), of(0, "arguments")], ["find_order", "{\"b\": 1e3,\"a\":2.50}"]);
    assert_eq!([of(1, "name"), of(1, "arguments")], ["find_order_", "{}"]);
    assert_eq!([of(2, "name"), of(2, "arguments")], ["_", "{}"]);
    assert!(of(2, "call_id").len() <= 64);
    for (called, at) in [(0, 3), (1, 4), (2, 5)] {
        assert_eq!(of(called, "call_id"), of(at, "call_id"));
        assert_eq!(of(at, "type"), "function_call_output");
    }
}

#[tokio::test]
async fn results_show_what_the_vendor_takes_in_them() {
    let pdf = ContentBlock::binary("file:///a/bill.pdf", *b"%PDF-").media_type("application/pdf");
    let blocks = vec![
        // Its bytes decide its type.
        ContentBlock::image("image/jpeg", PNG),
        ContentBlock::image("image/png", *b"no image"),
        ContentBlock::link("https://example.org/", "more"),
        pdf,
        ContentBlock::audio("audio/mpeg", *b"ID3"),
        ContentBlock::text("file:///a.txt", "words"),
    ];
    let shown = json!([
        { "type": "input_image", "image_url": png_url() },
        { "type": "input_file", "filename": "bill.pdf",
          "file_data": "data:application/pdf;base64,JVBERi0=" },
    ]);
    let note =
        "Image 2 of this message, [image image/png, 8 bytes], is not shown: it is not an image.";
    let with_text = |text: &str| {
        let mut parts = vec![json!({ "type": "input_text", "text": text })];
        parts.extend(shown.as_array().unwrap().clone());
        Value::from(parts)
    };
    let cases = [
        ("See.", false, with_text(&format!("See.\n\n{note}"))),
        ("Gone.", true, with_text(&format!("Error: Gone.\n\n{note}"))),
        ("", false, with_text(note)),
    ];
    for (text, is_error, expected) in cases {
        let messages = || {
            let result = result_with("call_1", text, is_error, blocks.clone());
            vec![Message::user("Show me."), assistant("", &["call_1"]), result]
        };
        assert_eq!(input(messages()).await[2]["output"], expected);
        let asked = request(messages(), vec![find_order()]);
        let found = sent_by(asked, "test-model", |b| b.result_blocks(false)).await.json();
        let expected = if is_error { "Error: Gone." } else { text };
        assert_eq!(found["input"][2]["output"], expected);
    }
}

#[tokio::test]
async fn each_body_begins_with_the_one_before() {
    let server = Server::start(std::iter::repeat_with(|| Reply::events(saying("Hi.")))).await;
    let kept = json!({ "server": base_url(&server), "model": "m", "items": [
        { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" },
        { "type": "function_call", "id": "fc_1" }, { "type": "function_call", "id": "fc_2" },
    ]});
    let messages = [
        Message::user("Which orders are there?"),
        with_vendor(assistant("", &["call_1", "call_2"]), "openai", kept),
        result_with("call_1", "1", true, vec![ContentBlock::image("image/png", PNG)]),
        result("call_2", "größer"),
        assistant("I see.", &["call_3"]),
        result("call_3", "3"),
        assistant("Done.", &[]),
        Message::user("Thanks."),
    ];
    // The loop's wrap-up message: never between a call and its result.
    let lengths = [1, 4, 6, 8];
    let model = Arc::new(model(&server, "m").build().unwrap());
    for length in lengths {
        let mut asked = request(messages[..length].to_vec(), vec![find_order()]);
        if length == 8 {
            asked.tool_choice = ToolChoice::None;
        }
        ask(&model, asked).await.outcome.unwrap();
    }
    let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body).collect();
    for pair in bodies.windows(2) {
        let prefix = pair[0].strip_suffix("]}").unwrap();
        assert!(pair[1].starts_with(prefix), "{}\n{}", pair[0], pair[1]);
    }
    assert!(bodies[1].contains(r#""encrypted_content":"gAAA""#));
    assert!(bodies[3].ends_with(r#"],"tool_choice":"none"}"#));
}

#[tokio::test]
async fn a_conversation_has_one_cache_key_and_another_conversation_another() {
    let key = |messages: Vec<Message>| async {
        sent(request(messages, vec![find_order()])).await["prompt_cache_key"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = key(vec![Message::user("Hello.")]).await;
    let later =
        key(vec![Message::user("Hello."), assistant("Hi.", &[]), Message::user("So?")]).await;
    let other = key(vec![Message::user("Hello!")]).await;
    assert_eq!(first, later);
    assert_ne!(first, other);
    assert!(first.len() <= 64 && !first.contains("Hello"));
}

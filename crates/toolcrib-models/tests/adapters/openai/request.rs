//! Requests.

use super::*;
use crate::support::NO_ANSWER;

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

    assert_eq!(seen.line(), "POST /v1/chat/completions");
    assert_eq!(seen.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("accept"), Some("text/event-stream"));
    insta::assert_snapshot!(serde_json::to_string_pretty(&seen.json()).unwrap());
}

#[tokio::test]
async fn settings_are_said_in_the_vendors_words() {
    type Set = fn(VendorModelBuilder) -> VendorModelBuilder;
    let named = json!({ "type": "function", "function": { "name": "find_order" } });
    let find_order = ToolChoice::Tool(ToolName::new("find_order").unwrap());
    let cases: [(&str, Set, ToolChoice, Value); 8] = [
        ("m", |b| b, ToolChoice::Auto, json!({})),
        (
            "m",
            |b| b.max_output_tokens(9),
            ToolChoice::None,
            json!({ "max_completion_tokens": 9, "tool_choice": "none" }),
        ),
        (
            "m",
            |b| b.temperature(0.0),
            ToolChoice::Required,
            json!({ "temperature": 0.0, "tool_choice": "required" }),
        ),
        (
            "m",
            |b| b.reasoning(ReasoningEffort::High),
            find_order,
            json!({ "reasoning_effort": "high", "tool_choice": named }),
        ),
        // These take tools only where reasoning is off.
        ("gpt-6-luna", |b| b, ToolChoice::Auto, json!({ "reasoning_effort": "none" })),
        (
            "gpt-6-luna",
            |b| b.reasoning(ReasoningEffort::Low),
            ToolChoice::Auto,
            json!({ "reasoning_effort": "low" }),
        ),
        ("gpt-5.4", |b| b, ToolChoice::Auto, json!({})),
        ("gpt-6-astra", |b| b, ToolChoice::Auto, json!({})),
    ];
    for (name, set, tool_choice, expected) in cases {
        let seen = sent_by(ModelRequest { tool_choice, ..hello() }, name, set).await;
        let mut found = seen.json();
        assert_eq!(found["model"], name);
        found.as_object_mut().unwrap().retain(|key, _| {
            !["model", "stream", "stream_options", "tools", "messages"].contains(&key.as_str())
        });
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn without_tools_and_system_text_nothing_is_said_of_them() {
    let mut asked = request(vec![Message::user("Hello.")], Vec::new());
    asked.system = "".into();
    asked.tool_choice = ToolChoice::Required;
    let found = sent_by(asked, "gpt-6-sol", |builder| builder).await.json();
    assert_eq!(
        found,
        json!({
            "model": "gpt-6-sol", "stream": true, "stream_options": { "include_usage": true },
            "messages": [{ "role": "user", "content": "Hello." }],
        })
    );
}

#[tokio::test]
async fn a_message_always_holds_what_the_vendor_asks_for() {
    let call = |text: &str| ToolCall::unparsed("call_1", "find_order", text);
    let cases = [
        (Message::assistant("", []), json!({ "role": "assistant", "content": NO_ANSWER })),
        (
            Message::assistant("", [call("{\"b\": 1e3,\"a\":2.50}")]),
            json!({ "role": "assistant", "content": null, "tool_calls": [{
                "id": "call_1", "type": "function",
                "function": { "name": "find_order", "arguments": "{\"b\": 1e3,\"a\":2.50}" },
            }]}),
        ),
    ];
    for (message, expected) in cases {
        let found = sent(request(vec![message, result("call_1", "1")], vec![find_order()])).await;
        assert_eq!(found["messages"][1], expected);
    }
    for text in ["", "null", "[1]", "{\"id\": 10", "{} {}"] {
        let messages = vec![Message::assistant("", [call(text)]), result("call_1", "1")];
        let found = sent(request(messages, vec![find_order()])).await;
        assert_eq!(found["messages"][1]["tool_calls"][0]["function"]["arguments"], "{}", "{text}");
    }
}

#[tokio::test]
async fn long_ids_of_other_servers_are_shortened_for_openais_own_models() {
    let long = "chatcmpl-tool-0123456789abcdef0123456789abcdef";
    let asked = || {
        let messages =
            vec![assistant("", &[long, "call_2"]), result(long, "1"), result("call_2", "2")];
        request(messages, vec![find_order()])
    };
    let ids = |body: Value| {
        let messages = &body["messages"];
        let calls = &messages[1]["tool_calls"];
        assert_eq!(calls[0]["id"], messages[2]["tool_call_id"]);
        assert_eq!([&calls[1]["id"], &messages[3]["tool_call_id"]], ["call_2"; 2]);
        calls[0]["id"].as_str().unwrap().to_owned()
    };
    assert_eq!(ids(sent(asked()).await), long);
    let own = ids(sent_by(asked(), "gpt-5.4", |builder| builder).await.json());
    assert!(own.starts_with("call_") && own.len() <= 40, "{own}");
}

#[tokio::test]
async fn what_a_server_wants_back_goes_back_where_it_fits() {
    let two = ["call_1", "call_2"];
    // (request, kept content, its vendor, calls, whether it goes back)
    let cases = [
        ("deepseek-v4", "deepseek-v4", "openai", &two[..], true),
        ("gpt-oss-120b", "gpt-oss-120b", "openai", &two[..], true),
        // A gateway has models of many vendors.
        ("mistral-large", "deepseek-v4", "openai", &two[..], false),
        // OpenAI refuses fields that it does not know.
        ("gpt-5.4", "gpt-5.4", "openai", &two[..], false),
        ("deepseek-v4", "deepseek-v4", "gemini", &two[..], false),
        ("deepseek-v4", "deepseek-v4", "openai", &two[..1], false),
    ];
    for (name, made_by, vendor, calls, goes_back) in cases {
        let server = Server::start([Reply::events(stream(&[text("Hi.")], "stop"))]).await;
        let kept = json!({
            "server": base_url(&server), "model": made_by,
            "reasoning_content": "Hm.", "reasoning": "Ha.", "reasoning_details": [{ "index": 0 }],
            "calls": [{ "google": { "thought_signature": "s" } }, null],
        });
        let message = with_vendor(assistant("So.", calls), vendor, kept.clone());
        let results: Vec<_> = calls.iter().map(|id| result(id, "1")).collect();
        let asked = request([vec![message], results].concat(), vec![find_order()]);
        ask(&Arc::new(model(&server, name).build().unwrap()), asked).await.outcome.unwrap();
        let found = server.last().json()["messages"][1].clone();
        for key in ["reasoning_content", "reasoning", "reasoning_details"] {
            assert_eq!(found.get(key), kept.get(key).filter(|_| goes_back), "{name} {key}");
        }
        let extra = found["tool_calls"][0].get("extra_content");
        assert_eq!(extra, Some(&kept["calls"][0]).filter(|_| goes_back), "{name}");
        let keys: Vec<_> = found["tool_calls"][0].as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), if goes_back { 4 } else { 3 }, "{keys:?}");
        assert_eq!(found["content"], "So.");
        assert!(found.get("server").is_none() && found.get("model").is_none());
    }
}

#[tokio::test]
async fn what_one_server_thought_goes_to_no_other() {
    let thinking = stream(&[delta(&json!({ "reasoning_content": "Hm." })), text("Hi.")], "stop");
    let [first, second] = [0; 2].map(|_| Server::start(vec![Reply::events(&thinking); 2]));
    let (first, second) = (first.await, second.await);
    let [here, there] =
        [&first, &second].map(|server| Arc::new(model(server, "deepseek-v4").build().unwrap()));

    let said = ask(&here, hello()).await.outcome.unwrap();
    let message = Message::Assistant { text: said.text.into(), calls: vec![], vendor: said.vendor };
    let messages = vec![Message::user("Hello."), message, Message::user("And?")];
    for model in [&here, &there] {
        ask(model, request(messages.clone(), vec![find_order()])).await.outcome.unwrap();
    }
    let reasoning =
        |server: &Server| server.last().json()["messages"][2].get("reasoning_content").cloned();
    assert_eq!(reasoning(&first), Some(json!("Hm.")));
    assert_eq!(reasoning(&second), None);
}

#[tokio::test]
async fn what_results_show_is_the_users_word_only_where_that_is_asked_for() {
    let shows = |id: &str, blocks| result_with(id, "See.", false, blocks);
    let pdf = ContentBlock::binary("file:///a/bill.pdf", *b"%PDF-").media_type("application/pdf");
    let messages = vec![
        Message::user("Show me."),
        assistant("", &["call_1", "call_2", "call_3"]),
        shows(
            "call_1",
            vec![
                ContentBlock::image("image/png", PNG),
                ContentBlock::link("https://example.org/", "more"),
                ContentBlock::image("image/tiff", *b"II*\0"),
            ],
        ),
        shows("call_2", vec![ContentBlock::text("file:///a.txt", "words")]),
        shows("call_3", vec![pdf, ContentBlock::audio("audio/mpeg", *b"ID3")]),
        Message::user("Well?"),
    ];
    let asked = || request(messages.clone(), vec![find_order()]);
    let found = sent(asked()).await;
    let roles = |body: &Value| {
        let messages = body["messages"].as_array().unwrap();
        messages.iter().map(|m| m["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let calls = ["system", "user", "assistant", "tool", "tool", "tool"];
    assert_eq!(roles(&found), [&calls[..], &["assistant", "user"]].concat());

    let found = sent_by(asked(), "test-model", |b| b.result_blocks(true)).await.json();
    let shown = ["assistant", "user", "assistant", "user"];
    assert_eq!(roles(&found), [&calls[..], &shown].concat());
    let said = |id: &str| {
        let text = format!("Output of call {id} of find_order, not written by the user:");
        json!({ "type": "text", "text": text })
    };
    assert_eq!(
        found["messages"][7]["content"],
        json!([
            said("call_1"),
            { "type": "image_url", "image_url": { "url": png_url() } },
            said("call_3"),
            { "type": "file", "file": {
                "filename": "bill.pdf", "file_data": "data:application/pdf;base64,JVBERi0=",
            }},
            { "type": "input_audio", "input_audio": { "data": "SUQz", "format": "mp3" } },
        ])
    );
}

#[tokio::test]
async fn each_body_begins_with_the_one_before() {
    let replies = std::iter::repeat_with(|| Reply::events(stream(&[text("Hi.")], "stop")));
    let server = Server::start(replies).await;
    let kept = json!({
        "server": base_url(&server), "model": "m", "reasoning_content": "Hm.", "calls": [null, null],
    });
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
    let model = Arc::new(model(&server, "m").result_blocks(true).build().unwrap());
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
    assert!(bodies[1].contains("reasoning_content"));
    assert!(bodies[3].ends_with(r#"],"tool_choice":"none"}"#));
}

//! Requests.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{
    Arguments, ContentBlock, Message, ModelRequest, ToolCall, ToolChoice, ToolName,
};
use toolcrib_models::{ReasoningEffort, VendorModelBuilder};
use toolcrib_testbed::images;

use super::{REASONED, STOP, builder, events, kept, result, sent, sent_by, tools, with_blocks};
use crate::support::{NO_ANSWER, Reply, Server, ask, in_lines, request};

#[tokio::test]
async fn a_conversation_is_sent_as_googles_own_sdk_sends_it() {
    let messages = vec![
        Message::user("Was order 1042 refunded? 🦊"),
        Message::assistant(
            "I look.",
            [
                ToolCall::unparsed("c1", "find_order", r#"{"order_id": 9007199254740993}"#),
                ToolCall::new("c2", "3d_view", json!({"kind": "wire"})),
                ToolCall::unparsed("c3", "find_order", r#"{"order_id": "#),
            ],
        ),
        result("c1", "find_order", "2 charges"),
        with_blocks(
            "c2",
            "3d_view",
            "[image image/png, 67 bytes]",
            &[
                ContentBlock::image("image/png", images::PNG),
                ContentBlock::image("image/tiff", *b"II*"),
                ContentBlock::audio("audio/wav", *b"RIFF"),
                ContentBlock::binary("file:///a.pdf", *b"%PDF").media_type("application/pdf"),
                ContentBlock::binary("file:///a", *b"?"),
                ContentBlock::text("file:///a.txt", "a"),
                ContentBlock::link("https://example.org", "a"),
            ],
            false,
        ),
        with_blocks("c3", "find_order", "the arguments are not JSON", &[], true),
        Message::assistant("", []),
        Message::user("And now?"),
    ];
    let request = ModelRequest {
        tool_choice: ToolChoice::Tool(ToolName::new("3d_view").unwrap()),
        ..request(messages, tools())
    };
    let settings = |builder: VendorModelBuilder| {
        builder.max_output_tokens(900).temperature(0.5).reasoning(ReasoningEffort::Low)
    };
    let seen = sent_by("gemini-3.8-flash", settings, request).await;

    let line = "POST /v1/models/gemini-3.8-flash:streamGenerateContent?alt=sse";
    assert_eq!(seen.line(), line);
    assert_eq!(seen.header("x-goog-api-key"), Some("a-dummy-key"));
    assert_eq!(seen.header("authorization"), None);
    assert_eq!(seen.header("content-type"), Some("application/json"));
    let lines = in_lines(
        &seen.body,
        &[
            "\"tools\"",
            "{\"name\"",
            "\"systemInstruction\"",
            "\"contents\"",
            "{\"parts\"",
            "{\"functionCall\"",
            "{\"functionResponse\"",
            "\"toolConfig\"",
        ],
    );
    insta::assert_snapshot!(lines, @r#"
    {"generationConfig":{"temperature":0.5,"maxOutputTokens":900,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}},
    "tools":[{"functionDeclarations":[
    {"name":"find_order","description":"One order.","parametersJsonSchema":{"additionalProperties":false,"properties":{"order_id":{"minimum":1,"type":"integer"}},"required":["order_id"],"type":"object"}},
    {"name":"_3d_view","description":"A view.","parametersJsonSchema":{"properties":{"kind":{"enum":["wire"]}},"type":"object"}}]}],
    "systemInstruction":
    {"parts":[{"text":"You help. Be brief."}],"role":"user"},
    "contents":[
    {"parts":[{"text":"Was order 1042 refunded? 🦊"}],"role":"user"},
    {"parts":[{"text":"I look."},
    {"functionCall":{"id":"c1","name":"find_order","args":{"order_id": 9007199254740993}},"thoughtSignature":"skip_thought_signature_validator"},
    {"functionCall":{"id":"c2","name":"_3d_view","args":{"kind":"wire"}}},
    {"functionCall":{"id":"c3","name":"find_order","args":{}}}],"role":"model"},
    {"parts":[
    {"functionResponse":{"id":"c1","name":"find_order","response":{"output":"2 charges"}}},
    {"functionResponse":{"id":"c2","name":"_3d_view","response":{"output":"[image image/png, 67 bytes]\n\nImage 2 of this message, [image image/tiff, 3 bytes], is not shown: it is not an image."},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="}},{"inlineData":{"mimeType":"application/pdf","data":"JVBERg=="}}]}},
    {"functionResponse":{"id":"c3","name":"find_order","response":{"error":"the arguments are not JSON"}}}],"role":"user"},
    {"parts":[{"text":"[note of the tool layer: there is no answer here]"}],"role":"model"},
    {"parts":[{"text":"And now?"}],"role":"user"}],
    "toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["_3d_view"]}}}
    "#);
}

#[tokio::test]
async fn a_model_that_says_nothing_is_a_note_and_a_user_is_not() {
    let messages = vec![Message::user("Hi"), Message::assistant("", []), Message::user("")];
    let request = ModelRequest {
        system: "".into(),
        tool_choice: ToolChoice::Required,
        ..request(messages, Vec::new())
    };
    assert_eq!(
        sent(request).await,
        json!({"contents": [
            {"parts": [{"text": "Hi"}], "role": "user"},
            {"parts": [{"text": NO_ANSWER}], "role": "model"},
            {"parts": [{"text": "(no text)"}], "role": "user"},
        ]})
    );
}

#[tokio::test]
async fn a_choice_of_tools_is_said_where_there_are_tools() {
    let choices = [
        (ToolChoice::Auto, Value::Null),
        (ToolChoice::None, json!({"mode": "NONE"})),
        (ToolChoice::Required, json!({"mode": "ANY"})),
        (
            ToolChoice::Tool(ToolName::new("find_order").unwrap()),
            json!({"mode": "ANY", "allowedFunctionNames": ["find_order"]}),
        ),
    ];
    for (tool_choice, expected) in choices {
        let asked = request(vec![Message::user("Hi")], tools());
        let body = sent(ModelRequest { tool_choice, ..asked }).await;
        assert_eq!(body["toolConfig"]["functionCallingConfig"], expected);
        assert_eq!(body["tools"][0]["functionDeclarations"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn settings_are_told_in_the_words_of_the_models_series() {
    let efforts = [
        ("gemini-2.5-flash", ReasoningEffort::Low, json!({"thinkingBudget": 1024})),
        ("gemini-2.5-pro", ReasoningEffort::Medium, json!({"thinkingBudget": 8192})),
        ("models/gemini-2.5-pro", ReasoningEffort::High, json!({"thinkingBudget": 24576})),
        ("gemini-3.8-flash", ReasoningEffort::Medium, json!({"thinkingLevel": "MEDIUM"})),
        ("gemini-3.8-flash", ReasoningEffort::High, json!({"thinkingLevel": "HIGH"})),
        ("gemma-4", ReasoningEffort::Low, json!({"thinkingLevel": "LOW"})),
    ];
    for (model, effort, mut expected) in efforts {
        expected["includeThoughts"] = true.into();
        let asked = request(vec![Message::user("Hi")], Vec::new());
        let seen = sent_by(model, |builder| builder.reasoning(effort), asked).await;
        assert_eq!(seen.json()["generationConfig"], json!({"thinkingConfig": expected}), "{model}");
    }
}

#[tokio::test]
async fn a_models_name_is_a_part_of_the_path() {
    let names = [
        ("gemini-3.8-flash", "/v1/models/gemini-3.8-flash:streamGenerateContent?alt=sse"),
        ("models/gemini-3.8-flash", "/v1/models/gemini-3.8-flash:streamGenerateContent?alt=sse"),
        ("tunedModels/mine", "/v1/tunedModels/mine:streamGenerateContent?alt=sse"),
        ("a?b#c%d", "/v1/models/a%3Fb%23c%25d:streamGenerateContent?alt=sse"),
    ];
    for (name, path) in names {
        let asked = request(vec![Message::user("Hi")], Vec::new());
        let seen = sent_by(name, |builder| builder, asked).await;
        assert_eq!(seen.line(), format!("POST {path}"));
    }
}

#[tokio::test]
async fn media_in_results_go_to_the_models_that_take_them() {
    let image = ContentBlock::image("image/png", images::PNG);
    let asked = || {
        let messages = vec![
            Message::user("Show."),
            Message::assistant("", [ToolCall::new("c1", "3d_view", json!({}))]),
            with_blocks("c1", "3d_view", "[image]", std::slice::from_ref(&image), false),
        ];
        request(messages, tools())
    };
    let cases = [
        ("gemini-3.8-flash", None, true),
        ("gemini-3.8-flash", Some(false), false),
        ("gemini-2.5-flash", None, false),
        ("gemini-2.5-flash", Some(true), true),
        ("some-model", None, true),
    ];
    for (model, said, expected) in cases {
        let settings = |builder: VendorModelBuilder| match said {
            Some(send) => builder.result_blocks(send),
            None => builder,
        };
        let body = sent_by(model, settings, asked()).await.json();
        let response = &body["contents"][2]["parts"][0]["functionResponse"];
        assert_eq!(response["response"], json!({"output": "[image]"}));
        assert_eq!(response["parts"].is_array(), expected, "{model} {said:?}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_make_no_request_invalid() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
    for arguments in ["", "null", "[1]", "no JSON", deep.as_str()] {
        let call = ToolCall {
            id: "c1".into(),
            name: "a made up name".into(),
            arguments: Arguments::Text(arguments.to_owned()),
        };
        let messages = vec![
            Message::user("Hi"),
            Message::assistant("", [call]),
            with_blocks("c1", "a made up name", "", &[], true),
        ];
        let body = sent(request(messages, tools())).await;
        let call = &body["contents"][1]["parts"][0]["functionCall"];
        assert_eq!(call, &json!({"id": "c1", "name": "_a_made_up_name", "args": {}}));
        let response = &body["contents"][2]["parts"][0]["functionResponse"];
        let expected = json!({"id": "c1", "name": "_a_made_up_name", "response": {"error": ""}});
        assert_eq!(response, &expected);
    }
}

#[tokio::test]
async fn a_body_begins_with_the_one_before_it() {
    let chunks = REASONED.map(str::to_owned);
    let chunks: Vec<_> = chunks.iter().map(String::as_str).collect();
    let answers = [events(&chunks), events(&chunks), events(&[STOP]), events(&[STOP])];
    let server = Server::start(answers.map(Reply::events)).await;
    let model = Arc::new(builder(&server, "gemini-3.8-flash").build().unwrap());
    let choices = [ToolChoice::Auto, ToolChoice::Required, ToolChoice::None, ToolChoice::Auto];
    let mut messages = vec![Message::user("Was order 1042 refunded?")];
    for (step, tool_choice) in choices.into_iter().enumerate() {
        let asked = ModelRequest { tool_choice, ..request(messages.clone(), tools()) };
        let response = ask(&model, asked).await.outcome.unwrap();
        let answer = kept(response);
        let Message::Assistant { calls, .. } = &answer else { panic!("an answer") };
        let results: Vec<_> =
            calls.iter().map(|call| result(&call.id, &call.name, &format!("of {step}"))).collect();
        messages.push(answer);
        if results.is_empty() {
            messages.push(Message::user("And now?"));
        }
        messages.extend(results);
    }
    let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body).collect();
    for pair in bodies.windows(2) {
        // Everything up to the end of the conversation; the tool choice comes after it.
        let end = pair[0].find(r#"],"toolConfig""#).unwrap_or(pair[0].len() - "]}".len());
        let (before, after) = (&pair[0][..end], &pair[1][..end]);
        assert_eq!(before, after);
        assert!(pair[1].len() > pair[0].len());
    }
}

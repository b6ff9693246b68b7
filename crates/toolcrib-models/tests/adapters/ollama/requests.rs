//! Requests.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{
    Arguments, ContentBlock, Message, ModelRequest, Secret, ToolCall, ToolChoice, ToolName,
    VendorContent,
};
use toolcrib_models::{ReasoningEffort, VendorModelBuilder};
use toolcrib_testbed::images;

use super::{DONE, REASONED, builder, lines, result, sent, sent_by, tools};
use crate::support::{Reply, Server, ask, in_lines, request, tool};

#[tokio::test]
async fn a_conversation_is_sent_as_ollamas_own_sdk_sends_it() {
    let thought = VendorContent { vendor: "ollama".into(), content: "I need it.".into() };
    let messages = vec![
        Message::user("Was order 1042 refunded? 🦊"),
        Message::Assistant {
            text: "".into(),
            calls: vec![
                ToolCall::unparsed("c1", "find_order", r#"{"order_id": 1042}"#),
                ToolCall::unparsed("c2", "3d-view", "no JSON"),
            ],
            vendor: Some(Arc::new(thought)),
        },
        result(
            "find_order",
            "[image image/png, 67 bytes]",
            &[
                ContentBlock::image("image/png", images::PNG),
                ContentBlock::audio("audio/wav", *b"RIFF"),
                ContentBlock::text("file:///a.txt", "a"),
            ],
            false,
        ),
        result("3d-view", "the arguments are not JSON", &[], true),
        Message::assistant("Yes.", []),
        Message::user("And now?"),
    ];
    let settings = |builder: VendorModelBuilder| {
        builder
            .key(Secret::new("a-dummy-key"))
            .max_output_tokens(900)
            .temperature(0.5)
            .reasoning(ReasoningEffort::Low)
    };
    let seen = sent_by(settings, request(messages, tools())).await;

    assert_eq!(seen.line(), "POST /api/chat");
    assert_eq!(seen.header("authorization"), Some("Bearer a-dummy-key"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    let lines = in_lines(&seen.body, &["\"tools\"", "\"messages\"", "{\"role\""]);
    insta::assert_snapshot!(lines, @r#"
    {"model":"qwen3:8b","stream":true,"think":"low","options":{"temperature":0.5,"num_predict":900},
    "tools":[{"type":"function","function":{"name":"find_order","description":"One order.","parameters":{"additionalProperties":false,"properties":{"order_id":{"minimum":1,"type":"integer"}},"required":["order_id"],"type":"object"}}}],
    "messages":[
    {"role":"system","content":"You help. Be brief."},
    {"role":"user","content":"Was order 1042 refunded? 🦊"},
    {"role":"assistant","thinking":"I need it.","tool_calls":[{"function":{"name":"find_order","arguments":{"order_id": 1042}}},{"function":{"name":"3d-view","arguments":{}}}]},
    {"role":"tool","content":"[image image/png, 67 bytes]","images":["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="],"tool_name":"find_order"},
    {"role":"tool","content":"Error: the arguments are not JSON","tool_name":"3d-view"},
    {"role":"assistant","content":"Yes."},
    {"role":"user","content":"And now?"}]}
    "#);
}

#[tokio::test]
async fn absent_parts_of_a_request_are_left_out_of_the_body() {
    let request = ModelRequest {
        system: "".into(),
        tool_choice: ToolChoice::None,
        ..request(vec![Message::user("Hi")], Vec::new())
    };
    let seen = sent_by(|builder| builder, request).await;
    assert_eq!(seen.header("authorization"), None);
    let expected = json!({
        "model": "qwen3:8b", "stream": true, "messages": [{"role": "user", "content": "Hi"}],
    });
    assert_eq!(seen.json(), expected);
}

#[tokio::test]
async fn a_restricting_tool_choice_is_a_last_system_message() {
    let choices = [
        (ToolChoice::Auto, None),
        (ToolChoice::Required, Some("Do not answer yet: call a tool now.")),
        (
            ToolChoice::Tool(ToolName::new("find_order").unwrap()),
            Some("Do not answer yet: call the tool `find_order` now, and no other."),
        ),
        (ToolChoice::None, Some("No tool can be called any more. Answer now, with what is known.")),
    ];
    for (tool_choice, told) in choices {
        let asked = request(vec![Message::user("Hi")], tools());
        let body = sent(ModelRequest { tool_choice, ..asked }).await;
        let told = told.map(|told| json!({"role": "system", "content": told}));
        assert_eq!(body["messages"].get(2), told.as_ref());
        assert_eq!(body["messages"][1]["content"], "Hi");
        assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_schema_is_sent_in_the_words_that_ollama_reads() {
    let schemas = [
        (
            json!({"type": "object", "properties": {
                "to": {"$ref": "#/$defs/address"}, "any": true, "kind": {"const": null},
                "level": {"enum": [1, "a", null, true]}, "one": {"oneOf": [{"type": "string"}]},
                "all": {"allOf": [{"type": "string"}], "description": "All"},
            }, "required": ["to"], "$defs": {"address": {"type": "object", "properties": {"zip": {"type": "string"}}}}}),
            json!({"properties": {
                "to": {"properties": {"zip": {"type": "string"}}, "type": "object"}, "any": {},
                "kind": {"enum": [null]}, "level": {"enum": [1, "a", null, true]},
                "one": {"anyOf": [{"type": "string"}]},
                "all": {"description": "All", "type": "string"},
            }, "required": ["to"], "type": "object"}),
        ),
        // Of a root, only its own properties are passed on.
        (
            json!({"anyOf": [{"$ref": "#/$defs/by_id"}, {"properties": {"name": {}}}], "$defs": {"by_id": {"properties": {"id": {"const": 1}}}}}),
            json!({"type": "object", "properties": {"id": {"enum": [1]}, "name": {}}}),
        ),
        (json!({}), json!({"type": "object"})),
    ];
    let mut told = Vec::new();
    for (schema, expected) in schemas {
        let body =
            sent(request(vec![Message::user("Hi")], vec![tool("t", "A tool.", schema)])).await;
        let function = &body["tools"][0]["function"];
        // As text, since the order of properties counts.
        assert_eq!(function["parameters"].to_string(), expected.to_string());
        told.push(function["description"].as_str().unwrap().to_owned());
    }
    let words = "A tool.\n\nThe arguments must also match this JSON Schema: \
                 {\"anyOf\":[{\"properties\":{\"id\":{\"enum\":[1]}}},{\"properties\":{\"name\":{}}}]}";
    assert_eq!(told, ["A tool.", words, "A tool."]);
}

#[tokio::test]
async fn images_are_sent_unless_they_are_not_to_be() {
    let image = ContentBlock::image("image/png", images::PNG);
    for (send, expected) in [(true, json!([images::PNG_BASE64])), (false, Value::Null)] {
        let messages = vec![
            Message::user("Hi"),
            Message::assistant("", [ToolCall::new("c", "find_order", json!({}))]),
            result("find_order", "[image]", std::slice::from_ref(&image), false),
        ];
        let seen = sent_by(|builder| builder.result_blocks(send), request(messages, tools())).await;
        assert_eq!(seen.json()["messages"][3]["images"], expected);
    }
}

#[tokio::test]
async fn a_body_begins_with_the_one_before_it() {
    let answers = [&REASONED[..], &REASONED[..], &[DONE], &[DONE]];
    let server = Server::start(answers.map(|answer| Reply::lines(lines(answer)))).await;
    let model = Arc::new(builder(&server).build().unwrap());
    let choices = [ToolChoice::Auto, ToolChoice::Required, ToolChoice::Auto, ToolChoice::None];
    let mut messages = vec![Message::user("Was order 1042 refunded?")];
    for tool_choice in choices {
        let asked = ModelRequest { tool_choice, ..request(messages.clone(), tools()) };
        let response = ask(&model, asked).await.outcome.unwrap();
        let results: Vec<_> =
            response.calls.iter().map(|call| result(&call.name, "none", &[], false)).collect();
        messages.push(Message::Assistant {
            text: response.text.into(),
            calls: response.calls,
            vendor: response.vendor,
        });
        if results.is_empty() {
            messages.push(Message::user("And now?"));
        }
        messages.extend(results);
    }
    let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body).collect();
    for pair in bodies.windows(2) {
        // Except for the instruction of a model that must call.
        let conversation = pair[0].strip_suffix("]}").unwrap();
        let conversation = conversation.split(",{\"role\":\"system\"").next().unwrap();
        assert!(pair[1].starts_with(conversation), "{}\n{}", pair[0], pair[1]);
        assert!(pair[1].len() > pair[0].len());
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_make_no_request_invalid() {
    for arguments in ["", "null", "[1]", "no JSON"] {
        let call = ToolCall {
            id: "c".into(),
            name: "find_order".into(),
            arguments: Arguments::Text(arguments.to_owned()),
        };
        let messages = vec![
            Message::user("Hi"),
            Message::assistant("", [call]),
            result("find_order", "", &[], true),
        ];
        let body = sent(request(messages, tools())).await;
        let expected = json!([{"function": {"name": "find_order", "arguments": {}}}]);
        assert_eq!(body["messages"][2]["tool_calls"], expected);
        assert_eq!(body["messages"][3]["content"], "Error: ");
    }
}

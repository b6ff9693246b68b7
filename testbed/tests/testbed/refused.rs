//! What the vendors would not take, this server does not take either.

use serde_json::{Value, json};
use toolcrib_testbed::Protocol;

use crate::{
    answers::{ask, body, user},
    support::{send, server},
};

/// Where the words of a refusal stand.
fn words(protocol: Protocol, answer: &Value) -> String {
    let pointer = if protocol == Protocol::Ollama { "/error" } else { "/error/message" };
    answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Sends what a good request becomes with one change, which must be refused with these words.
async fn refuse(protocol: Protocol, cases: &[(&str, Value, &str)]) {
    let server = server().await;
    for (pointer, value, expected) in cases {
        let mut request = body(protocol, &json!([user(protocol, "hello")]));
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        request.pointer_mut(parent).unwrap()[key] = value.clone();
        let came = ask(&server, protocol, &request).await;
        let found = words(protocol, &came.json());
        let shown = format!("{protocol:?} {pointer} = {value}: {found}");
        assert!(came.status == 400 && found.contains(expected), "{shown} ({})", came.status);
    }
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

#[tokio::test]
async fn openai() {
    let calls = |calls: Value| json!({ "role": "assistant", "content": null, "tool_calls": calls });
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "x" });
    let (one, two) = (call("a", "charges", &json!("{}")), call("b", "refunds", &json!("{}")));
    let schema = |schema: Value| json!([{ "type": "function", "function": { "name": "t", "parameters": schema } }]);
    let named = |name: &str| json!([{ "type": "function", "function": { "name": name } }]);
    refuse(Protocol::OpenAi, &[
        ("/foo", json!(1), "Unknown parameter: 'foo'"),
        ("/messages", json!([]), "one item or more"),
        ("/messages", Value::Null, "Missing required parameter: 'messages'"),
        ("/messages", json!([{ "role": "user" }]), "Missing required parameter: 'messages[0].content'"),
        ("/messages", json!([{ "role": "user", "content": 1 }]), "Invalid type for 'messages[0].content'"),
        ("/messages", json!([{ "role": "human", "content": "x" }]), "'human'"),
        ("/messages", json!([{ "role": "user", "content": "x", "id": 1 }]), "Unknown parameter: 'messages[0].id'"),
        ("/messages", json!([{ "role": "user", "content": [] }]), "one item or more"),
        ("/messages", json!([{ "role": "assistant", "content": null }]), "no 'tool_calls'"),
        ("/messages", json!([result("a")]), "there is no call 'a'"),
        ("/messages", json!([calls(json!([one, two])), result("a")]), "there is none for b"),
        ("/messages", json!([calls(json!([one])), user(Protocol::OpenAi, "x"), result("a")]), "there is none for a"),
        ("/messages", json!([calls(json!([one])), result("a"), result("a")]), "duplicate value for 'tool_call_id'"),
        ("/messages", json!([calls(json!([one, one]))]), "duplicate value 'a'"),
        ("/messages", json!([calls(json!([]))]), "one item or more"),
        ("/messages", json!([calls(json!([call("a", "charges", &json!({}))]))]), "expected string"),
        ("/messages", json!([calls(json!([call("a", "a.b", &json!("{}"))]))]), "does not match"),
        ("/messages", json!([calls(json!([one])), { "role": "tool", "tool_call_id": "a", "content": [{ "type": "image_url", "image_url": {} }] }]), "expected one of text"),
        ("/tools", json!([]), "one item or more"),
        ("/tools", named("a b"), "does not match the pattern"),
        ("/tools", named(&"x".repeat(65)), "too long"),
        ("/tools", json!([named("t")[0], named("t")[0]]), "two tools are called `t`"),
        ("/tools", schema(json!({ "type": "string" })), "must be \"object\""),
        ("/tools", schema(json!({ "type": "object", "oneOf": [] })), "no 'oneOf' at the top"),
        ("/tools", schema(json!({ "type": "object", "properties": { "a": { "type": "array" } } })), "has no 'items'"),
        ("/tools", json!([{ "type": "function", "function": { "name": "t", "strict": true, "parameters": { "type": "object", "properties": { "a": {} }, "additionalProperties": false } } }]), "must include 'a'"),
        ("/tool_choice", json!("any"), "got 'any'"),
        ("/tool_choice", json!({ "type": "function", "function": { "name": "other" } }), "is not in the 'tools'"),
        ("/max_tokens", json!(0), "1 or more"),
        ("/stream", json!(false), "only allowed when 'stream'"),
    ])
    .await;
}

#[tokio::test]
async fn openai_responses() {
    let one = |id: &str| json!({ "type": "function_call", "call_id": id, "name": "charges", "arguments": "{}" });
    let result = |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": "x" });
    let asked = user(Protocol::OpenAiResponses, "x");
    let with = |key: &str, value: Value| {
        let mut call = one("a");
        call[key] = value;
        json!([call, result("a")])
    };
    let tool = |tool: Value| {
        let mut whole = json!({ "type": "function", "name": "t", "strict": false, "parameters": { "type": "object" } });
        for (key, value) in tool.as_object().unwrap() {
            whole[key] = value.clone();
        }
        json!([whole])
    };
    let thought = json!({ "type": "reasoning", "id": "rs_1", "summary": [] });
    refuse(Protocol::OpenAiResponses, &[
        ("/messages", json!([]), "Unknown parameter: 'messages'"),
        ("/input", json!([]), "one item or more"),
        ("/input", Value::Null, "Missing required parameter: 'input'"),
        ("/input", json!([{ "role": "user" }]), "Missing required parameter: 'input[0].content'"),
        ("/input", json!([{ "role": "tool", "content": "x" }]), "'tool'"),
        ("/input", json!([{ "role": "user", "content": [{ "type": "text", "text": "x" }] }]), "expected one of input_text"),
        ("/input", json!([{ "type": "image", "content": "x" }]), "no item 'image'"),
        ("/input", json!([result("a")]), "no tool call found for function call output with call_id a"),
        ("/input", json!([one("a"), one("b"), result("a")]), "no tool output found for function call b"),
        ("/input", json!([one("a"), asked, result("a")]), "no tool output found for function call a"),
        ("/input", json!([one("a"), result("a"), result("a")]), "duplicate function call output"),
        ("/input", json!([one("a"), one("a")]), "duplicate function call with call_id a"),
        ("/input", with("arguments", json!({})), "expected string"),
        ("/input", with("name", json!("a.b")), "does not match"),
        ("/input", with("call_id", json!("x".repeat(65))), "1 to 64 characters"),
        ("/input", with("extra_content", json!({})), "Unknown parameter: 'input[0].extra_content'"),
        ("/input", json!([one("a"), { "type": "function_call_output", "call_id": "a", "output": [{ "type": "input_audio" }] }]), "expected one of"),
        ("/input", json!([thought, one("a"), result("a")]), "items are not persisted"),
        ("/tools", tool(json!({ "function": {} })), "Unknown parameter: 'tools[0].function'"),
        ("/tools", tool(json!({ "name": "a b" })), "does not match the pattern"),
        ("/tools", tool(json!({ "parameters": { "type": "object", "anyOf": [] } })), "no 'anyOf' at the top"),
        ("/tools", tool(json!({ "strict": null })), "must be false"),
        ("/tool_choice", json!({ "type": "function", "function": { "name": "charges" } }), "Unknown parameter: 'tool_choice.function'"),
        ("/tool_choice", json!({ "type": "function", "name": "other" }), "is not in the 'tools'"),
        ("/max_output_tokens", json!(15), "16 or more"),
        ("/max_completion_tokens", json!(15), "Unknown parameter"),
        ("/reasoning", json!({ "effort": "lots" }), "expected one of none"),
        ("/previous_response_id", json!("resp_1"), "nothing of that name was stored"),
    ])
    .await;
}

#[tokio::test]
async fn anthropic() {
    let of_user = |content: Value| json!([{ "role": "user", "content": content }]);
    let used = |id: &str| json!({ "type": "tool_use", "id": id, "name": "charges", "input": {} });
    let result = |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": "x" });
    let asked = |used: Value, then: Value| json!([user(Protocol::Anthropic, "x"), { "role": "assistant", "content": used }, { "role": "user", "content": then }]);
    let schema = |schema: Value| json!([{ "name": "t", "input_schema": schema }]);
    let marked = |text: &str| json!({ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } });
    let text = json!({ "type": "text", "text": "x" });
    refuse(Protocol::Anthropic, &[
        ("/foo", json!(1), "foo: Extra inputs are not permitted"),
        ("/max_tokens", Value::Null, "max_tokens: Field required"),
        ("/messages", json!([]), "at least one message"),
        ("/messages", json!([{ "role": "assistant", "content": "x" }]), "must use the `user` role"),
        ("/messages", json!([{ "role": "system", "content": "x" }]), "messages.0.role"),
        ("/messages", of_user(json!([])), "non-empty content"),
        ("/messages", of_user(json!("")), "must be non-empty"),
        ("/messages", of_user(json!([{ "type": "text", "text": " \n" }])), "non-whitespace"),
        ("/messages", of_user(json!([{ "type": "text", "text": "x", "id": 1 }])), "messages.0.content.0.id: Extra"),
        ("/messages", of_user(json!([used("a")])), "no block of type `tool_use`"),
        ("/messages", of_user(json!([result("a")])), "unexpected `tool_use_id`"),
        ("/messages", json!([user(Protocol::Anthropic, "x"), { "role": "assistant", "content": "y" }]), "must end with a user message"),
        ("/messages", asked(json!([used("a"), used("b")]), json!([result("a")])), "immediately after: b"),
        ("/messages", asked(json!([used("a")]), json!([text, result("a")])), "must come before"),
        ("/messages", asked(json!([used("a")]), json!([result("a"), result("a")])), "single result"),
        ("/messages", asked(json!([used("a"), used("a")]), json!([result("a")])), "must be unique"),
        ("/messages", asked(json!([used("a.b")]), json!([result("a.b")])), "should match pattern"),
        ("/messages", asked(json!([{ "type": "tool_use", "id": "a", "name": "charges", "input": "{}" }]), json!([result("a")])), "valid dictionary"),
        ("/messages", of_user(json!([{ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "%" } }])), "base64"),
        ("/messages", of_user(json!([marked("1"), marked("2"), marked("3"), marked("4"), marked("5")])), "Found 5"),
        ("/tools", schema(json!({})), "input_schema.type: Field required"),
        ("/tools", schema(json!({ "type": "object", "anyOf": [] })), "at the top level"),
        ("/tools", schema(json!({ "type": "object", "properties": { "a b": {} } })), "Property keys"),
        ("/tools", json!([{ "name": "a.b", "input_schema": { "type": "object" } }]), "should match pattern"),
        ("/tool_choice", json!({ "type": "tool", "name": "other" }), "not found in provided tools"),
        ("/tool_choice", json!("auto"), "valid object"),
        ("/thinking", json!({ "type": "enabled", "budget_tokens": 10 }), "greater than or equal to 1024"),
        ("/thinking", json!({ "type": "enabled", "budget_tokens": 1024 }), "`max_tokens` must be greater"),
    ])
    .await;

    // What only some versions take, and what needs tools.
    let server = server().await;
    let sent = |version: &'static str, mut body: Value| {
        body["model"] = "test-model".into();
        let headers = [("authorization", "Bearer test-key"), ("anthropic-version", version)];
        let url = server.url();
        async move { send(&url, "POST", "/v1/messages", &headers, &body.to_string()).await }
    };
    let mut warm = body(Protocol::Anthropic, &json!([user(Protocol::Anthropic, "x")]));
    warm["temperature"] = 1.into();
    assert_eq!(sent("2023-06-01", warm.clone()).await.status, 200);
    let came = sent("2026-10-21", warm.clone()).await;
    assert!(came.text().contains("temperature: Extra inputs"), "{}", came.text());
    assert!(sent("2020-01-01", warm).await.text().contains("is not a valid version"));
    let mut bare = body(Protocol::Anthropic, &asked(json!([used("a")]), json!([result("a")])));
    bare.as_object_mut().unwrap().remove("tools");
    assert!(sent("2023-06-01", bare).await.text().contains("must define tools"));
}

#[tokio::test]
async fn gemini() {
    let of_user = |parts: Value| json!([{ "role": "user", "parts": parts }]);
    let call = |name: &str| json!({ "functionCall": { "name": name, "args": {} } });
    let result = |name: &str| json!({ "functionResponse": { "name": name, "response": {} } });
    let asked = |calls: Value, then: Value| json!([user(Protocol::Gemini, "x"), { "role": "model", "parts": calls }, { "role": "user", "parts": then }]);
    let functions = |declared: Value| json!([{ "functionDeclarations": [declared] }]);
    let schema = |schema: Value| functions(json!({ "name": "t", "parameters": schema }));
    let object =
        |property: Value| schema(json!({ "type": "OBJECT", "properties": { "a": property } }));
    refuse(Protocol::Gemini, &[
        ("/foo", json!(1), "Unknown name \"foo\": Cannot find field"),
        ("/contents", json!([]), "contents is not specified"),
        ("/contents", of_user(json!([])), "must not be empty"),
        ("/contents", of_user(json!([{}])), "must have one initialized field"),
        ("/contents", of_user(json!([{ "text": "" }])), "must not be empty"),
        ("/contents", of_user(json!([{ "text": "x", "inlineData": {} }])), "already set"),
        ("/contents", of_user(json!([{ "text": "x", "id": 1 }])), "Unknown name \"id\" at 'contents[0].parts[0]'"),
        ("/contents", json!([{ "role": "assistant", "parts": [{ "text": "x" }] }]), "valid role: user, model"),
        ("/contents", json!([{ "role": "model", "parts": [{ "text": "x" }] }]), "must be of the role user"),
        ("/contents", json!([{ "role": "model", "parts": [call("charges")] }]), "function call turn must come"),
        ("/contents", of_user(json!([result("charges")])), "function response turn must come"),
        ("/contents", asked(json!([call("charges"), call("refunds")]), json!([result("charges")])), "there are 1 for 2"),
        ("/contents", asked(json!([call("charges")]), json!([{ "text": "x" }])), "there are 0 for 1"),
        ("/contents", asked(json!([call("charges"), call("refunds")]), json!([result("refunds"), result("charges")])), "`charges` comes first"),
        ("/contents", asked(json!([call("charges")]), json!([{ "functionResponse": { "name": "charges", "response": "x" } }])), "must be of type object"),
        ("/contents", of_user(json!([{ "inlineData": { "mimeType": "image/png", "data": "%" } }])), "Base64"),
        ("/tools", functions(json!({ "name": "1st" })), "must start with a letter"),
        ("/tools", functions(json!({ "name": "t", "parametersJsonSchema": { "type": "array" } })), "must be of an object"),
        ("/tools", functions(json!({ "name": "t", "parameters": {}, "parametersJsonSchema": {} })), "only one of"),
        ("/tools", schema(json!({ "type": "OBJECT" })), "should be non-empty"),
        ("/tools", schema(json!({ "type": "OBJECT", "additionalProperties": false })), "Unknown name \"additionalProperties\""),
        ("/tools", object(json!({ "type": "ARRAY" })), "items: missing field"),
        ("/tools", object(json!({ "type": "INTEGER", "enum": ["1"] })), "only allowed for STRING"),
        ("/tools", object(json!({ "type": "STRING", "enum": [""] })), "cannot be empty"),
        ("/tools", object(json!({ "type": "STRING", "format": "uri" })), "only 'enum' and 'date-time'"),
        ("/tools", object(json!({ "type": "DATE" })), "is not a type"),
        ("/tools", object(json!({ "type": ["STRING", "NULL"] })), "must be of type string"),
        ("/tools", schema(json!({ "type": "OBJECT", "properties": { "a": {} }, "required": ["b"] })), "property is not defined"),
        ("/toolConfig", json!({ "functionCallingConfig": { "mode": "AUTO", "allowedFunctionNames": ["charges"] } }), "only be set when mode is ANY"),
        ("/toolConfig", json!({ "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["other"] } }), "there is no function `other`"),
        ("/generationConfig", json!({ "maxTokens": 1 }), "Unknown name \"maxTokens\" at 'generationConfig'"),
    ])
    .await;
}

#[tokio::test]
async fn ollama() {
    let of = |name: &str| json!({ "function": { "name": name, "arguments": {} } });
    let asked = |calls: Value, then: &[Value]| {
        let mut all = vec![json!({ "role": "assistant", "content": "", "tool_calls": calls })];
        all.extend_from_slice(then);
        Value::from(all)
    };
    let result = |name: &str| json!({ "role": "tool", "tool_name": name, "content": "x" });
    refuse(Protocol::Ollama, &[
        ("/messages", Value::Null, "messages is required"),
        ("/messages", json!([{ "role": "user", "content": [] }]), "cannot unmarshal messages[0].content"),
        ("/messages", json!([{ "role": "human", "content": "" }]), "invalid role"),
        ("/messages", json!([result("charges")]), "a result without a call"),
        ("/messages", asked(json!([of("charges")]), &[]), "no results of call_1"),
        ("/messages", asked(json!([of("charges"), of("refunds")]), &[result("refunds"), result("charges")]), "`charges` is next"),
        ("/messages", asked(json!([{ "function": { "name": "charges", "arguments": "{}" } }]), &[]), "arguments into object"),
        ("/messages", json!([{ "role": "user", "content": "x", "images": 1 }, { "role": "tool", "content": "x", "images": ["%"] }]), "base64"),
        ("/options", json!({ "num_predict": "x" }), "cannot unmarshal options.num_predict"),
        ("/think", json!("deeply"), "high, medium, low, max"),
    ])
    .await;

    // What Ollama does not know it passes over.
    let server = server().await;
    let mut request = body(Protocol::Ollama, &json!([user(Protocol::Ollama, "hello")]));
    request["foo"] = 1.into();
    assert_eq!(ask(&server, Protocol::Ollama, &request).await.status, 200);
}

#[tokio::test]
async fn keys_models_paths_and_bodies() {
    let server = server().await;
    let bearer = ("authorization", "Bearer test-key");
    let wrong = ("authorization", "Bearer wrong");
    let version = ("anthropic-version", "2023-06-01");
    let hello =
        r#"{"model":"other","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}"#;
    let chat = "/v1/chat/completions";
    let gemini = "/v1beta/models/test-model:generateContent";
    let contents = r#"{"contents":[{"parts":[{"text":"hello"}]}]}"#;
    let google = |key| ("x-goog-api-key", key);
    type Case<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>, &'a str, u16, &'a str);
    let cases: Vec<Case<'_>> = vec![
        ("POST", chat, vec![], hello, 401, "didn't provide an API key"),
        ("POST", chat, vec![wrong], hello, 401, "\"invalid_api_key\""),
        ("POST", chat, vec![bearer], hello, 404, "\"model_not_found\""),
        ("POST", chat, vec![bearer], "{", 400, "no valid JSON"),
        ("GET", chat, vec![bearer], "", 405, "takes POST"),
        ("POST", "/v1/completions", vec![bearer], hello, 404, "there is no path"),
        ("POST", "/v1/messages", vec![version], hello, 401, "\"authentication_error\""),
        ("POST", "/v1/messages", vec![wrong, version], hello, 401, "\"authentication_error\""),
        ("POST", "/v1/messages", vec![bearer], hello, 400, "anthropic-version: header is required"),
        ("POST", "/v1/messages", vec![bearer, version], hello, 404, "\"not_found_error\""),
        ("POST", gemini, vec![], contents, 403, "\"PERMISSION_DENIED\""),
        ("POST", gemini, vec![google("wrong")], contents, 400, "\"API_KEY_INVALID\""),
        ("POST", gemini, vec![google("test-key")], contents, 200, "Grüß"),
        (
            "POST",
            "/v1/models/other:generateContent",
            vec![google("test-key")],
            contents,
            404,
            "\"NOT_FOUND\"",
        ),
        (
            "POST",
            "/v1beta/models/test-model:countTokens",
            vec![google("test-key")],
            contents,
            404,
            "\"NOT_FOUND\"",
        ),
        ("POST", "/api/chat", vec![], hello, 404, "`other` does not exist"),
        ("POST", "/api/chat", vec![wrong], hello, 401, "unauthorized"),
    ];
    for (method, path, headers, body, status, words) in cases {
        let came = send(&server.url(), method, path, &headers, body).await;
        let shown = format!("{method} {path} {headers:?}: {} {}", came.status, came.text());
        assert!(came.status == status && came.text().contains(words), "{shown}");
    }
}

//! Each protocol once, as one would type it, and what it means by its fields.

use serde_json::{Value, json};
use toolcrib_testbed::{ModelServer, Protocol};

use crate::support::{Came, builder, send, server};

const BEARER: (&str, &str) = ("authorization", "Bearer test-key");

const ANTHROPIC: [(&str, &str); 2] =
    [("x-api-key", "test-key"), ("anthropic-version", "2023-06-01")];

const GOOGLE: (&str, &str) = ("x-goog-api-key", "test-key");

fn schema() -> Value {
    json!({ "type": "object", "properties": { "order": { "type": "integer" } } })
}

pub(crate) async fn ask(server: &ModelServer, protocol: Protocol, body: &Value) -> Came {
    let stream = body["stream"] == true;
    let (path, headers): (&str, &[(&str, &str)]) = match protocol {
        Protocol::OpenAi => ("/v1/chat/completions", &[BEARER]),
        Protocol::OpenAiResponses => ("/v1/responses", &[BEARER]),
        Protocol::Anthropic => ("/v1/messages", &ANTHROPIC),
        Protocol::Gemini if stream => {
            ("/v1/models/test-model:streamGenerateContent?alt=sse", &[GOOGLE])
        }
        Protocol::Gemini => ("/v1/models/test-model:generateContent", &[GOOGLE]),
        Protocol::Ollama => ("/api/chat", &[]),
    };
    let mut body = body.clone();
    match protocol {
        Protocol::Gemini => drop(body.as_object_mut().unwrap().remove("stream")),
        _ => body["model"] = "test-model".into(),
    }
    send(&server.url(), "POST", path, headers, &body.to_string()).await
}

/// A request with both tools and some messages.
pub(crate) fn body(protocol: Protocol, messages: &Value) -> Value {
    let names = ["charges", "refunds"];
    let function = |name| json!({ "type": "function", "function": { "name": name, "description": "Looks them up.", "parameters": schema() } });
    match protocol {
        Protocol::OpenAi => json!({
            "stream": true, "stream_options": { "include_usage": true },
            "messages": messages, "tools": names.map(function),
        }),
        Protocol::OpenAiResponses => json!({
            "stream": true, "store": false, "input": messages,
            "tools": names.map(|name| json!({ "type": "function", "name": name, "description": "Looks them up.", "parameters": schema(), "strict": false })),
        }),
        Protocol::Anthropic => json!({
            "stream": true, "max_tokens": 1024, "messages": messages,
            "tools": names.map(|name| json!({ "name": name, "description": "Looks them up.", "input_schema": schema() })),
        }),
        Protocol::Gemini => json!({
            "stream": true, "contents": messages, "tools": [{ "functionDeclarations":
                names.map(|name| json!({ "name": name, "description": "Looks them up.", "parametersJsonSchema": schema() })) }],
        }),
        Protocol::Ollama => {
            json!({ "stream": true, "messages": messages, "tools": names.map(function) })
        }
    }
}

pub(crate) fn user(protocol: Protocol, text: &str) -> Value {
    match protocol {
        Protocol::Gemini => json!({ "role": "user", "parts": [{ "text": text }] }),
        _ => json!({ "role": "user", "content": text }),
    }
}

#[tokio::test]
async fn every_protocol_streams_text_and_calls_in_its_form() {
    for protocol in Protocol::ALL {
        let server = builder().fragment_chars(12).start().await.unwrap();
        let request = body(protocol, &json!([user(protocol, "order 7")]));
        let came = ask(&server, protocol, &request).await;
        assert_eq!(came.status, 200, "{}", came.text());
        insta::assert_snapshot!(format!("{protocol:?}_stream"), came.text());
    }
}

#[tokio::test]
async fn every_protocol_answers_whole() {
    for protocol in Protocol::ALL {
        let server = server().await;
        let mut request = body(protocol, &json!([user(protocol, "order 7")]));
        request["stream"] = false.into();
        if protocol == Protocol::OpenAi {
            request.as_object_mut().unwrap().remove("stream_options");
        }
        let came = ask(&server, protocol, &request).await;
        assert_eq!(came.status, 200, "{}", came.text());
        assert!(came.head.contains("content-type: application/json"), "{}", came.head);
        let pretty = serde_json::to_string_pretty(&came.json()).unwrap();
        insta::assert_snapshot!(format!("{protocol:?}_whole"), pretty);
    }
}

#[tokio::test]
async fn every_protocol_lists_the_model() {
    let server = server().await;
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let lists: [(&str, Headers<'_>, &str); 5] = [
        ("/v1/models", &[BEARER], "/data/0/id"),
        ("/v1/models", &ANTHROPIC, "/data/0/id"),
        ("/v1/models", &[GOOGLE], "/models/0/name"),
        ("/v1beta/models?key=test-key", &[], "/models/0/name"),
        ("/api/tags", &[], "/models/0/model"),
    ];
    for (path, headers, pointer) in lists {
        let came = send(&server.url(), "GET", path, headers, "").await;
        let name = came.json().pointer(pointer).unwrap().as_str().unwrap().to_owned();
        assert_eq!(name.strip_prefix("models/").unwrap_or(&name), "test-model", "{path}");
    }
}

/// The history after both calls: what the model said, and what came of it. The second failed.
fn history(protocol: Protocol, failed: bool) -> Value {
    let ids = ["call_a", "call_b"];
    let results = [r#"{"rows":[1,2]}"#, r#"{"note":"none"}"#];
    let names = ["charges", "refunds"];
    let asked = user(protocol, "order 7");
    match protocol {
        Protocol::OpenAi => {
            let calls = [0, 1].map(|i| json!({ "id": ids[i], "type": "function", "function": { "name": names[i], "arguments": "{\"order\":7}" } }));
            let marked = if failed { "Error: closed" } else { results[1] };
            // In whatever order they come.
            json!([asked, { "role": "assistant", "content": null, "tool_calls": calls },
                { "role": "tool", "tool_call_id": ids[1], "content": marked },
                { "role": "tool", "tool_call_id": ids[0], "content": [{ "type": "text", "text": results[0] }] }])
        }
        Protocol::OpenAiResponses => {
            let call = |i: usize| json!({ "type": "function_call", "call_id": ids[i], "name": names[i], "arguments": "{\"order\":7}" });
            let result = |i: usize, output: Value| json!({ "type": "function_call_output", "call_id": ids[i], "output": output });
            let marked = if failed { "Error: closed" } else { results[1] };
            json!([
                asked,
                call(0),
                call(1),
                result(1, json!(marked)),
                result(0, json!([{ "type": "input_text", "text": results[0] }]))
            ])
        }
        Protocol::Anthropic => {
            let calls = [0, 1].map(|i| json!({ "type": "tool_use", "id": ids[i], "name": names[i], "input": { "order": 7 } }));
            let second = if failed { "closed" } else { results[1] };
            json!([asked, { "role": "assistant", "content": calls }, { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": ids[0], "content": results[0] },
                { "type": "tool_result", "tool_use_id": ids[1], "is_error": failed,
                  "content": [{ "type": "text", "text": second }] },
            ] }])
        }
        Protocol::Gemini => {
            let calls = names
                .map(|name| json!({ "function_call": { "name": name, "args": { "order": 7 } } }));
            let second =
                if failed { json!({ "error": "closed" }) } else { json!({ "note": "none" }) };
            json!([asked, { "role": "model", "parts": calls }, { "role": "user", "parts": [
                { "functionResponse": { "name": names[0], "response": { "output": results[0] } } },
                { "functionResponse": { "name": names[1], "response": second } },
            ] }])
        }
        Protocol::Ollama => {
            let calls = names
                .map(|name| json!({ "function": { "name": name, "arguments": { "order": 7 } } }));
            let marked = if failed { "Error: closed" } else { results[1] };
            json!([asked, { "role": "assistant", "content": "", "tool_calls": calls },
                { "role": "tool", "tool_name": names[0], "content": results[0] },
                { "role": "tool", "tool_name": names[1], "content": marked }])
        }
    }
}

/// All the text of a stream.
fn said(protocol: Protocol, came: &Came) -> String {
    let pointer = match protocol {
        Protocol::OpenAi => "/choices/0/delta/content",
        Protocol::OpenAiResponses => "/delta",
        Protocol::Anthropic => "/delta/text",
        Protocol::Gemini => "/candidates/0/content/parts/0/text",
        Protocol::Ollama => "/message/content",
    };
    let data = came.data();
    // Arguments of calls come under the same name.
    let is_text = |event: &&Value| {
        protocol != Protocol::OpenAiResponses || event["type"] == "response.output_text.delta"
    };
    data.iter().filter(is_text).filter_map(|event| event.pointer(pointer)?.as_str()).collect()
}

#[tokio::test]
async fn the_model_reads_the_results_whatever_form_they_have() {
    let server = server().await;
    for protocol in Protocol::ALL {
        let came = ask(&server, protocol, &body(protocol, &history(protocol, false))).await;
        assert_eq!(said(protocol, &came), "2 charges, none", "{protocol:?}: {}", came.text());
        let came = ask(&server, protocol, &body(protocol, &history(protocol, true))).await;
        assert_eq!(said(protocol, &came), "refunds failed: closed", "{protocol:?}");
    }
}

#[tokio::test]
async fn a_tool_choice_of_none_reaches_the_model() {
    let server = server().await;
    let choices = [
        (Protocol::OpenAi, "tool_choice", json!("none")),
        (Protocol::OpenAiResponses, "tool_choice", json!("none")),
        (Protocol::Anthropic, "tool_choice", json!({ "type": "none" })),
        (Protocol::Gemini, "toolConfig", json!({ "functionCallingConfig": { "mode": "NONE" } })),
    ];
    for (protocol, key, choice) in choices {
        let mut request = body(protocol, &json!([user(protocol, "order 7")]));
        request[key] = choice;
        let came = ask(&server, protocol, &request).await;
        assert_eq!(said(protocol, &came), "I may not look.", "{protocol:?}: {}", came.text());
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_look_as_the_vendors_send_them() {
    let server = server().await;
    let expected = [
        (Protocol::OpenAi, r#""arguments":"{\"order\""#),
        (Protocol::OpenAiResponses, r#""delta":"{\"order\""#),
        (Protocol::Anthropic, r#""partial_json":"{\"order\""#),
        (Protocol::Gemini, "MALFORMED_FUNCTION_CALL"),
        (Protocol::Ollama, r#""content":"charges("#),
    ];
    for (protocol, part) in expected {
        let request = body(protocol, &json!([user(protocol, "garbled")]));
        let came = ask(&server, protocol, &request).await;
        assert!(came.text().contains(part), "{protocol:?}: {}", came.text());
    }
}

#[tokio::test]
async fn an_answer_ends_where_its_tokens_do() {
    let server = server().await;
    let limits = [
        (Protocol::OpenAi, "max_completion_tokens", json!(1), "\"length\""),
        (Protocol::Anthropic, "max_tokens", json!(1), "\"max_tokens\""),
        (Protocol::Gemini, "generationConfig", json!({ "maxOutputTokens": 1 }), "\"MAX_TOKENS\""),
        (Protocol::Ollama, "options", json!({ "num_predict": 1 }), "\"length\""),
    ];
    for (protocol, key, limit, reason) in limits {
        let mut request = body(protocol, &json!([user(protocol, "hello")]));
        request[key] = limit;
        let came = ask(&server, protocol, &request).await;
        assert_eq!(said(protocol, &came), "Grüß", "{protocol:?}");
        assert!(came.text().contains(reason), "{protocol:?}: {}", came.text());
    }
}

#[tokio::test]
async fn what_begins_as_an_earlier_request_comes_from_the_cache() {
    let server = server().await;
    let cached = [
        (Protocol::OpenAi, "/usage/prompt_tokens_details/cached_tokens"),
        (Protocol::OpenAiResponses, "/response/usage/input_tokens_details/cached_tokens"),
        (Protocol::Gemini, "/usageMetadata/cachedContentTokenCount"),
        (Protocol::Anthropic, "/message/usage/cache_read_input_tokens"),
    ];
    for (protocol, pointer) in cached {
        let tokens = |came: &Came| {
            let data = came.data();
            data.iter().filter_map(|event| event.pointer(pointer)?.as_u64()).max().unwrap_or(0)
        };
        let mut first = body(protocol, &json!([user(protocol, "order 7")]));
        let mut second = body(protocol, &history(protocol, false));
        for request in
            [&mut first, &mut second].into_iter().filter(|_| protocol == Protocol::Anthropic)
        {
            request["tools"][1]["cache_control"] = json!({ "type": "ephemeral" });
        }
        assert_eq!(tokens(&ask(&server, protocol, &first).await), 0, "{protocol:?}");
        assert!(tokens(&ask(&server, protocol, &second).await) > 10, "{protocol:?}");
        let other_tools = second.to_string().replace("Looks them up", "Finds them");
        let third = serde_json::from_str(&other_tools).unwrap();
        assert_eq!(tokens(&ask(&server, protocol, &third).await), 0, "{protocol:?}");
    }
}

#[tokio::test]
async fn thoughts_are_shown_where_asked_for_and_wanted_back() {
    let server = builder().thoughts(true).call_ids(true).start().await.unwrap();

    let mut request = body(Protocol::Anthropic, &json!([user(Protocol::Anthropic, "order 7")]));
    request["thinking"] = json!({ "type": "enabled", "budget_tokens": 1024 });
    request["max_tokens"] = 2048.into();
    let came = ask(&server, Protocol::Anthropic, &request).await;
    assert!(came.text().contains("signature_delta"), "{}", came.text());
    request["messages"] = history(Protocol::Anthropic, false);
    let came = ask(&server, Protocol::Anthropic, &request).await;
    assert!(came.text().contains("but found `tool_use`"), "{}", came.text());

    let mut request = body(Protocol::Gemini, &json!([user(Protocol::Gemini, "order 7")]));
    request["generationConfig"] = json!({ "thinkingConfig": { "includeThoughts": true } });
    let came = ask(&server, Protocol::Gemini, &request).await;
    let parts: Vec<Value> = came
        .data()
        .iter()
        .map(|event| event["candidates"][0]["content"]["parts"][0].clone())
        .collect();
    assert!(parts[0]["thought"] == true, "{parts:?}");
    let calls: Vec<_> =
        parts.into_iter().filter(|part| part.get("functionCall").is_some()).collect();
    assert!(calls[0]["functionCall"]["id"].is_string() && calls[0]["thoughtSignature"].is_string());
    let results = calls.iter().map(|part| &part["functionCall"]).map(|call| {
        json!({ "functionResponse": { "id": call["id"], "name": call["name"], "response": { "rows": [1], "note": "none" } } })
    });
    // With their ids they may come in any order.
    let results: Vec<Value> = results.rev().collect();
    request["contents"] = json!([user(Protocol::Gemini, "order 7"), { "role": "model", "parts": calls }, { "role": "user", "parts": results }]);
    let came = ask(&server, Protocol::Gemini, &request).await;
    assert!(came.text().contains("1 charg"), "{}", came.text());
    request["contents"] = history(Protocol::Gemini, false);
    let came = ask(&server, Protocol::Gemini, &request).await;
    assert!(came.text().contains("missing a thought_signature"), "{}", came.text());

    let mut request = body(Protocol::OpenAi, &history(Protocol::OpenAi, false));
    request["messages"][1]["reasoning_content"] = "I look.".into();
    let came = ask(&server, Protocol::OpenAi, &request).await;
    assert!(came.text().contains(r#""reasoning_content":"#), "{}", came.text());
    let came = ask(&builder().start().await.unwrap(), Protocol::OpenAi, &request).await;
    assert!(came.text().contains("Unknown parameter: 'messages[1].reasoning_content'"));

    let asked = user(Protocol::OpenAiResponses, "order 7");
    let mut request = body(Protocol::OpenAiResponses, &json!([asked]));
    let came = ask(&server, Protocol::OpenAiResponses, &request).await;
    assert!(!came.text().contains("I look at what"), "{}", came.text());
    request["reasoning"] = json!({ "summary": "auto" });
    let came = ask(&server, Protocol::OpenAiResponses, &request).await;
    assert!(came.text().contains("I look at what was asked"), "{}", came.text());
    let said = came.data().last().unwrap()["response"]["output"].as_array().unwrap().clone();
    let results = said.iter().filter_map(|item| item.get("call_id")).map(|id| {
        json!({ "type": "function_call_output", "call_id": id, "output": "{\"rows\":[1],\"note\":\"none\"}" })
    });
    let all: Vec<_> =
        std::iter::once(asked).chain(said.clone()).chain(results.collect::<Vec<_>>()).collect();
    let leave_out = |at: usize| {
        let mut left: Vec<Value> = all.clone();
        left.remove(at);
        Value::from(left)
    };
    let mut unsealed = all.clone();
    unsealed[1]["encrypted_content"] = "unfinished".into();
    let cases = [
        (json!(all), "1 charg"),
        (leave_out(1), "without its required 'reasoning' item"),
        (leave_out(2), "without its required following item"),
        (json!(unsealed), "could not be verified"),
        (json!([all[0], all[1]]), "without its required following item"),
    ];
    for (input, expected) in cases {
        request["input"] = input;
        let came = ask(&server, Protocol::OpenAiResponses, &request).await;
        assert!(came.text().contains(expected), "{expected}: {}", came.text());
    }

    let mut request = body(Protocol::Ollama, &json!([user(Protocol::Ollama, "hello")]));
    request["think"] = true.into();
    let came = ask(&server, Protocol::Ollama, &request).await;
    assert!(came.text().contains(r#""thinking":"#), "{}", came.text());
}

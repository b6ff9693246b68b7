//! Over HTTP, as JSON and as a stream: the arguments that middleware saw are those that the body received.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcrib_core::{CallDecision, ToolContext, call_middleware};
use toolcrib_gateway::Gateway;

use crate::{
    support::{builder, engine},
    web::{ANA, Web, post, request, two},
};

const RAW: &str = "$serde_json::private::RawValue";

#[tokio::test]
async fn a_client_passed_arguments_that_two_readers_read_in_two_ways() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (body, middleware) = (Arc::clone(&seen), Arc::clone(&seen));
    let read = builder("read").input_schema(json!({ "type": "object" })).handler(
        move |args: Value, _: ToolContext| {
            body.lock().unwrap().push(args.to_string());
            async { "ran" }
        },
    );
    let engine = engine()
        .tool(read)
        .middleware(call_middleware("notes", move |call| {
            middleware.lock().unwrap().push(call.args.to_string());
            Ok(CallDecision::Proceed)
        }))
        .build()
        .unwrap();
    let web = Web::of(&Gateway::builder(engine).build(), two()).await;
    let session = web.session("/mcp", ANA).await;

    let mut nested = String::from("1");
    for _ in 0..12 {
        let deeper = format!("{}{nested}{}", "[".repeat(100), "]".repeat(100));
        nested = json!({ RAW: deeper }).to_string();
    }
    let hostile = [
        format!(r#"{{"path":{{"{RAW}":"\"/etc/passwd\""}}}}"#),
        format!(r#"{{"path":[{{"a":1,"{RAW}":"\"/etc/passwd\""}}]}}"#),
        format!(r#"{{"{RAW}":"{{\"path\":1}}"}}"#),
        format!(r#"{{"path":{{"{RAW}":"1"}}}}"#).replace('$', "\\u0024"),
        r#"{"path":"/tmp","path":"/etc/passwd"}"#.to_owned(),
        format!(r#"{{"path":{nested}}}"#),
    ];
    // A request with a progress token is answered as a stream, others as JSON.
    for meta in ["", r#","_meta":{"progressToken":"p"}"#] {
        for arguments in &hostile {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"read","arguments":{arguments}{meta}}}}}"#
            );
            let mut sent = post("/mcp", ANA, Some(&session), &Value::Null);
            *sent.body_mut() = body.into();
            let reply = web.reply(sent).await;
            let message = reply.message();
            assert_eq!((reply.status, &message["id"]), (400, &json!(7)), "{reply:?}");
            assert!(!reply.body.contains("passwd"), "{reply:?}");
        }
        let arguments = json!({ "path": [1.0, 1e300, "\u{0}", { "a": null }] });
        let mut params = json!({ "name": "read", "arguments": arguments });
        if !meta.is_empty() {
            params["_meta"] = json!({ "progressToken": "p" });
        }
        let reply = web.post(ANA, Some(&session), &request("tools/call", &params)).await;
        assert_eq!(reply.message()["result"]["isError"], json!(false), "{reply:?}");
    }
    let expected = r#"{"path":[1,1e+300,"\u0000",{"a":null}]}"#;
    assert_eq!(*seen.lock().unwrap(), [expected; 4]);
    web.end().await;
}

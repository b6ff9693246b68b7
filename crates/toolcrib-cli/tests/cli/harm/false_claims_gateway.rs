//! The gateway answered methods that it does not have as if it had them.

use std::fs;

use serde_json::{Value, json};

use super::served::{Piped, Served, greeting, initialize, message, with_metadata};
use crate::support::Project;

/// Features of servers besides tools, which the gateway does not declare.
const UNDECLARED: [&str; 18] = [
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "tasks/list",
    "tasks/result",
    "skills/list",
    "skills/get",
    "roots/list",
    "no/such/method",
];

/// Parameters that fit each of them, so that none is refused for its parameters. A header repeats the
/// name, whatever it is called.
fn params() -> Value {
    let name = "file:///a/SKILL.md";
    json!({
        "uri": name, "name": name, "level": "info", "taskId": name,
        "ref": { "type": "ref/prompt", "name": "a" }, "argument": { "name": "a", "value": "b" },
        "inputResponses": {},
    })
}

fn token(project: &Project) -> String {
    fs::read_to_string(project.state().join("serve-token")).unwrap().trim().to_owned()
}

fn assert_unknown(answer: &Value, what: &str) {
    assert_eq!(answer["error"]["code"], -32601, "{what}: {answer}");
    assert_eq!(answer["id"], 7, "{what}: {answer}");
}

#[test]
fn undeclared_methods_were_answered_with_empty_lists() {
    // Skills are resources: a project without them declares none.
    let file = "name = 'plain'\n[[tool]]\nkind = 'command'\nname = 'say'\ndescription = 'Says.'\n\
                program = 'true'\nread_only = true\n";
    let project = Project::of(&[("toolcrib.toml", file)]);
    let served = Served::start(&project, &mut project.command(&["serve"]));
    let token = token(&project);
    let session = served.session("/mcp", &token);
    let mut sessions = Piped::start(&mut project.command(&["serve"]));
    sessions.ask(&initialize());
    let mut stateless = Piped::start(&mut project.command(&["serve"]));
    for method in UNDECLARED {
        for params in [json!({}), params()] {
            let plain = message(method, &params);
            let answer = served.post("/mcp", &token, Some(&session), &plain);
            assert_unknown(&answer.message(), method);
            assert_unknown(&sessions.ask(&plain), method);

            let answer = served.stateless("/mcp", &token, method, params.clone());
            assert_eq!(answer.status, 404, "{method}: {answer:?}");
            assert_unknown(&answer.message(), method);
            let alone = message(method, &with_metadata(params));
            assert_unknown(&stateless.ask(&alone), method);
        }
    }
    // The declared feature works.
    let list = message("tools/list", &json!({}));
    assert!(!served.post("/mcp", &token, Some(&session), &list).tools().is_empty());
    assert!(!served.stateless("/mcp", &token, "tools/list", json!({})).tools().is_empty());
    let begun = served.post("/mcp", &token, None, &initialize()).message();
    let declared = json!({ "logging": {}, "tools": { "listChanged": true } });
    assert_eq!(begun["result"]["capabilities"], declared);
    let level = message("logging/setLevel", &json!({ "level": "error" }));
    assert_eq!(sessions.ask(&level)["result"], json!({}));
}

#[test]
fn a_handshake_was_taken_in_the_era_that_has_none() {
    let project = Project::desk();
    let served = Served::start(&project, &mut project.command(&["serve"]));
    let token = token(&project);
    let authorization = format!("Bearer {token}");
    let mut asks_for_it = greeting();
    asks_for_it["protocolVersion"] = json!("2026-07-28");
    for params in [json!({}), greeting(), asks_for_it.clone()] {
        let answer = served.stateless("/mcp", &token, "initialize", params.clone());
        assert_eq!((answer.status, answer.header("mcp-session-id")), (404, None), "{answer:?}");
        assert_unknown(&answer.message(), "initialize");
        // The metadata alone decides the era, also without headers.
        let body = message("initialize", &with_metadata(params));
        let answer = served.post("/mcp", &token, None, &body);
        assert_eq!(answer.status, 404, "{answer:?}");
        assert_unknown(&answer.message(), "initialize");
        let mut piped = Piped::start(&mut project.command(&["serve"]));
        assert_unknown(&piped.ask(&body), "initialize");
        // Either era may begin after it.
        assert!(piped.ask(&initialize())["result"].is_object());
    }
    let headers = [
        ("Authorization", authorization.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
    ];
    let answer = served.send("POST", "/mcp", &headers, &message("initialize", &json!({})));
    assert_eq!(answer.status, 404, "{answer:?}");
    // A client that requests the newest version gets the newest one with sessions.
    let begun = served.post("/mcp", &token, None, &message("initialize", &asks_for_it));
    assert_eq!(begun.message()["result"]["protocolVersion"], "2025-11-25", "{begun:?}");
}

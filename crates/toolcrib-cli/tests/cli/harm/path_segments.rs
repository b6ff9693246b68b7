//! Arguments in a path that a server, or what is before it, reads as another path.

use serde_json::{Value, json};

use crate::{http::Server, support::Project};

/// A text is passed as it is.
fn as_argument(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn a_part_of_a_path_led_to_another_path() {
    let server = Server::start();
    let port = server.port;
    let path = |style: &str, schema: Value| json!([{ "name": "id", "in": "path", "required": true, "style": style, "schema": schema }]);
    let text = json!({ "type": "string" });
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let document = json!({ "openapi": "3.0.3", "paths": {
        "/v1/{id}/end": { "get": { "operationId": "text", "parameters": path("simple", text) } },
        "/v2/{id}": { "get": { "operationId": "list", "parameters": path("label", list) } },
    } });
    let toml = format!(
        "policy_default = 'allow'\n[[tool]]\nkind = 'openapi'\nfile = 'o.json'\n\
         server = 'http://127.0.0.1:{port}'\nallow_addresses = ['127.0.0.1']\n\
         [[tool]]\nkind = 'http'\nname = 'plain'\ndescription = 'Gets.'\n\
         url = 'http://127.0.0.1:{port}/v3/{{id}}/end?q={{id}}'\nallow_addresses = ['127.0.0.1']\n\
         [tool.params]\nid = {{ type = 'string' }}\n"
    );
    let project = Project::of(&[("toolcrib.toml", &toml), ("o.json", &document.to_string())]);
    for value in ["..", "%2e%2e", "a\\b"] {
        for (tool, id) in
            [("text", json!(value)), ("list", json!(["a", value])), ("plain", json!(value))]
        {
            let (code, refused) =
                project.json(&["call", tool, &format!("id={}", as_argument(&id))]);
            assert_eq!(code, Some(1), "{tool} {value}: {refused}");
            let said = refused["value"].as_str().unwrap();
            assert!(said.contains("`id` must not"), "{tool} {value}: {refused}");
        }
    }
    assert_eq!(server.asked(), [""; 0]);
    for value in ["a/b", "100%"] {
        for (tool, id) in
            [("text", json!(value)), ("list", json!(["a", value])), ("plain", json!(value))]
        {
            let (code, answer) = project.json(&["call", tool, &format!("id={}", as_argument(&id))]);
            assert_eq!(code, Some(0), "{tool} {value}: {answer}");
        }
    }
}

#[test]
fn two_values_in_one_segment_led_to_another_path() {
    let server = Server::start();
    let port = server.port;
    let parameter = |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    let document = json!({ "openapi": "3.0.3", "paths": { "/a/{id}{n}/x": { "get": {
        "operationId": "document", "parameters": [parameter("id"), parameter("n")],
    } } } });
    let toml = format!(
        "policy_default = 'allow'\n[[tool]]\nkind = 'openapi'\nfile = 'o.json'\n\
         server = 'http://127.0.0.1:{port}'\nallow_addresses = ['127.0.0.1']\n\
         [[tool]]\nkind = 'http'\nname = 'plain'\ndescription = 'Gets.'\n\
         url = 'http://127.0.0.1:{port}/a/{{id}}{{n}}/x'\nallow_addresses = ['127.0.0.1']\n\
         [tool.params]\nid = {{ type = 'string' }}\nn = {{ type = 'string' }}\n"
    );
    let project = Project::of(&[("toolcrib.toml", &toml), ("o.json", &document.to_string())]);
    let called = |tool: &str, id: &str, n: &str| {
        project.json(&["call", tool, &format!("id={id}"), &format!("n={n}")])
    };
    for tool in ["document", "plain"] {
        for (id, n) in [
            (".%2", "e"),
            ("%2e%", "2e"),
            (".%25", "2e"),
            ("%2", "e;x"),
            ("a%2f.%2", "e"),
            ("a%5", "c"),
            ("%252e.", "%2fadmin"),
        ] {
            let (code, refused) = called(tool, id, n);
            assert_eq!(code, Some(1), "{tool} {id} {n}: {refused}");
            assert!(refused["value"].as_str().unwrap().contains("` must not"), "{refused}");
        }
        assert_eq!(server.asked(), [""; 0]);
    }
    for tool in ["document", "plain"] {
        for (id, n) in [("%2", "0"), ("a.", ".b"), ("100", "%"), ("a/b", "c")] {
            let (code, answer) = called(tool, id, n);
            assert_eq!(code, Some(0), "{tool} {id} {n}: {answer}");
        }
    }
}

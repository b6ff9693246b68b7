//! Catalogs in the formats of vendors and MCP servers.

use serde_json::{Value, json};
use toolcrib_lint::{Format, parse};

fn schema() -> Value {
    json!({ "type": "object", "properties": { "id": { "type": "integer" } } })
}

#[test]
fn every_known_format_gives_the_same_tool() {
    let mcp = json!({ "name": "find", "description": "Finds.", "inputSchema": schema() });
    let anthropic = json!({ "name": "find", "description": "Finds.", "input_schema": schema() });
    let function = json!({ "name": "find", "description": "Finds.", "parameters": schema() });
    let mut flat = function.clone();
    flat["type"] = json!("function");
    for (catalog, format) in [
        (json!([mcp]), Format::Mcp),
        (json!({ "tools": [mcp] }), Format::Mcp),
        (json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [mcp] } }), Format::Mcp),
        (json!([anthropic]), Format::InputSchema),
        (json!({ "model": "m", "messages": [], "tools": [anthropic] }), Format::InputSchema),
        (json!({ "offered": [anthropic], "withheld": [] }), Format::InputSchema),
        (json!([function]), Format::Functions),
        (json!({ "tools": [flat] }), Format::Functions),
        (json!([{ "type": "function", "function": function }]), Format::ChatFunctions),
    ] {
        let parsed = parse(&catalog).unwrap();
        assert_eq!(parsed.format, format, "{catalog}");
        let [tool] = parsed.tools.as_slice() else { panic!("{parsed:?}") };
        assert_eq!((&*tool.name, &*tool.description), ("find", "Finds."));
        assert_eq!(tool.input_schema, Some(schema()), "{catalog}");
    }
    assert_eq!(parse(&json!([mcp, flat])).unwrap().format, Format::Mixed);
    assert_eq!(parse(&json!([])).unwrap().format, Format::Plain);
}

#[test]
fn what_is_missing_is_left_for_the_rules() {
    let parsed =
        parse(&json!({ "tools": [{ "name": "find", "description": null }], "nextCursor": "x" }))
            .unwrap();
    assert!(parsed.has_more);
    assert_eq!((&*parsed.tools[0].description, &parsed.tools[0].input_schema), ("", &None));
    // MCP has two places for a title.
    let titled = json!([{ "name": "find", "annotations": { "title": "Look" }, "inputSchema": {} }]);
    assert_eq!(parse(&titled).unwrap().tools[0].title.as_deref(), Some("Look"));
    // A tool that a vendor provides has no description to check.
    let parsed =
        parse(&json!([{ "type": "web_search" }, { "type": "function", "name": "find" }])).unwrap();
    assert_eq!((parsed.tools.len(), parsed.skipped), (1, 1));
}

#[test]
fn what_is_no_catalog_is_refused_with_what_was_expected() {
    for (value, problem) in [
        (json!(1), "this is a number"),
        (json!({}), "this is an empty object"),
        (json!({ "mcpServers": {} }), "this is an object with 1 key, \"mcpServers\""),
        (json!({ "tools": {} }), "its list of tools is an object"),
        (json!(["find"]), "entry 1 is a text"),
        (json!([{ "name": "find" }, { "description": "Finds." }]), "entry 2 has no `name`"),
        (json!([{ "name": 5 }]), "entry 1 has a `name` that is a number"),
        (json!([{ "name": "a", "description": [] }]), "entry 1 has a `description` that is a list"),
        (json!([{ "function": "f" }]), "entry 1 has a `function` that is a text"),
        (
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32601, "message": "no\u{202e}" } }),
            "this is a server's error response: \"no\\u{202e}\"",
        ),
    ] {
        let error = parse(&value).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{problem}; expected a list of tools")), "{error}");
        assert!(error.contains("`inputSchema` (MCP)") && error.contains("`parameters` (OpenAI)"));
    }
}

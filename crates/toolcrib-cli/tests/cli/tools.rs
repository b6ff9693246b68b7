//! `toolcrib tools`: all tools, regardless of who may see them.

use serde_json::json;

use crate::support::Project;

#[test]
fn declared_tools_are_listed_also_those_that_policy_withholds() {
    let desk = Project::desk();
    let (code, listed) = desk.json(&["tools"]);
    assert_eq!(code, Some(0));
    let tools = listed["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 25);
    let refund = tools.iter().find(|tool| tool["name"] == "refund_duplicate_charge").unwrap();
    let (_, menu) = desk.json(&["menu"]);
    let offered = menu["offered"].as_array().unwrap();
    assert!(!offered.iter().any(|tool| tool["name"] == refund["name"]));
    assert_eq!((&refund["toolset"], &refund["remote"]), (&json!("billing"), &json!(false)));
    assert_eq!(refund["annotations"]["idempotent"], true);
    assert!(refund["origin"].as_str().unwrap().starts_with("toolcrib.toml:"));
    assert_eq!(listed["sources"], json!([]));
}

#[test]
fn a_toolset_is_listed_alone_and_an_unknown_one_is_refused_with_the_known() {
    let desk = Project::desk();
    let outcome = desk.toolcrib(&["tools", "--toolset", "catalog"]);
    assert_eq!(outcome.code, Some(0));
    insta::assert_snapshot!(outcome.stdout, @r#"
    catalog
      search_products  Products whose name contains a text, with prices. Use it to find out a …
        reads, from toolcrib.toml:420
      check_stock  How many pieces of a product are in stock. Use it before you promise a …
        reads, from toolcrib.toml:434
    2 tools, 0 of them remote
    "#);
    let outcome = desk.toolcrib(&["tools", "--toolset", "catalog", "-q"]);
    assert_eq!(outcome.stdout, "search_products\ncheck_stock\n");
    let outcome = desk.toolcrib(&["tools", "--toolset", "mail"]);
    assert_eq!(outcome.code, Some(2));
    insta::assert_snapshot!(outcome.stderr, @"error: unknown toolset `mail`; the toolsets are `account`, `billing`, `catalog`, `orders`, `shipping`, `tickets`");
}

#[test]
fn verbose_shows_the_arguments_and_json_the_whole_schema() {
    let file = r#"
[[tool]]
kind = "command"
name = "paint"
description = "Paints."
program = "true"
args = ["{color}", "{sizes}"]
params.color = { type = "string", enum = ["red", "blue"], description = "Which color." }
params.sizes = { type = "array", items = { type = "integer" }, optional = true }
"#;
    let project = Project::of(&[("toolcrib.toml", file)]);
    let outcome = project.toolcrib(&["tools", "-v"]);
    insta::assert_snapshot!(format!("{}{}", outcome.stdout, outcome.stderr), @r#"
    no toolset
      paint  Paints.
        color ("red" | "blue")  Which color.
        sizes (array of integer, optional)
        writes, from toolcrib.toml:2
    1 tool, 0 of them remote
    "#);
    let (_, json) = project.json(&["tools"]);
    assert_eq!(json["tools"][0]["input_schema"]["properties"]["color"]["enum"][1], "blue");
}

#[test]
fn types_behind_references_and_combinations_are_shown_and_apply_to_pairs() {
    let document = json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "https://api.example.com" }],
        "paths": { "/orders/{order-id}": { "post": {
            "operationId": "createOrder",
            "parameters": [
                { "name": "order-id", "in": "path", "required": true,
                  "schema": { "$ref": "#/components/schemas/Id" } },
                { "name": "tags", "in": "query", "schema": { "anyOf": [
                    { "type": "array", "items": { "$ref": "#/components/schemas/Id" } },
                    { "type": "null" },
                ] } },
            ],
            "requestBody": { "required": true, "content": { "application/json": {
                "schema": { "allOf": [{ "$ref": "#/components/schemas/Order" }] },
            } } },
        } } },
        "components": { "schemas": {
            "Id": { "type": "integer" },
            "Order": { "type": "object", "properties": { "sku": { "type": "string" } } },
        } },
    });
    let file = "policy_default = \"allow\"\n[[tool]]\nkind = \"openapi\"\nfile = \"api.json\"\n";
    let project = Project::of(&[("toolcrib.toml", file), ("api.json", &document.to_string())]);
    let listed = project.toolcrib(&["tools", "-v"]).stdout;
    for shown in ["order-id (integer)", "tags (array of integer | null, optional)", "body (object)"]
    {
        assert!(listed.contains(shown), "{listed}");
    }
    let pairs = ["order-id=5", "tags=[1]", r#"body={"sku":"tea"}"#];
    let called = project.toolcrib(&[&["call", "createOrder", "--dry-run"][..], &pairs].concat());
    assert_eq!(called.code, Some(0), "{}{}", called.stdout, called.stderr);
}

#[test]
fn remote_tools_are_marked_and_a_source_that_fails_is_told() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/mcp_server.py");
    let project = |on_failure: &str| {
        let file = format!(
            r#"
[mcp.small]
command = "python3"
args = ["{script}", "small"]
env = {{ MARK = "none", LOG = "started.log" }}

[mcp.gone]
command = "no-such-program-anywhere"
on_failure = "{on_failure}"
"#
        );
        Project::of(&[("toolcrib.toml", &file)])
    };
    let (code, listed) = project("fail").json(&["tools"]);
    assert_eq!(code, Some(1));
    let tools = listed["tools"].as_array().unwrap();
    let echo = tools.iter().find(|tool| tool["name"] == "mcp__small__echo").unwrap();
    assert_eq!((&echo["source"], &echo["remote"]), (&json!("mcp:small"), &json!(true)));
    assert_eq!(listed["sources"][0]["ok"], true);
    assert_eq!(
        (&listed["sources"][1]["name"], &listed["sources"][1]["ok"]),
        (&json!("mcp:gone"), &json!(false))
    );
    let outcome = project("omit").toolcrib(&["tools"]);
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stderr.contains("notice: mcp:gone could not be listed"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("from mcp:small, remote"), "{}", outcome.stdout);
}

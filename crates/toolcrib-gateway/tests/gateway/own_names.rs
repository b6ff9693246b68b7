//! Names, descriptions and values of a server pass unchanged where clients see no prefix.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::{Rule, unfence};
use toolcrib_gateway::{Access, Gateway};

use super::{
    support::engine,
    whole::{Raw, gateway_under, pairs, server_with},
};

#[tokio::test]
async fn names_descriptions_and_nulls_pass_as_the_server_has_them_without_a_prefix() {
    for (era, of_server) in pairs() {
        let none = Rule::deny("closed").toolsets(["mcp.resources"]);
        let gateway = gateway_under(none, &["s"], of_server).prefix("s", "").build();
        let (mut client, _) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        let listed = client.ask("tools/list", json!({})).await;
        let tools = listed["tools"].as_array().unwrap();
        let find = |name: &str| tools.iter().find(|tool| tool["name"] == name);
        let odd = find("odd.name").unwrap();
        assert!(odd.get("description").is_none() && find(&"x".repeat(100)).is_some(), "{listed}");
        let arguments = json!({ "maybe": null, "plain": null });
        let params = json!({ "name": "odd.name", "arguments": arguments });
        let result = client.ask("tools/call", params).await;
        let said = unfence(result["content"][0]["text"].as_str().unwrap()).0;
        assert_eq!(said, r#"{"maybe":null}"#, "only what the schema permits");
    }
}

#[tokio::test]
async fn a_rule_hides_a_tool_by_its_own_name_at_the_server() {
    for (era, of_server) in pairs() {
        let denied = Rule::deny("odd").tools(["mcp__s__odd.name"]);
        let gateway = gateway_under(denied, &["s"], of_server).prefix("s", "").build();
        let (mut client, _) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        let listed = client.ask("tools/list", json!({})).await.to_string();
        assert!(!listed.contains("odd") && listed.contains("mixed"), "{listed}");
        let params = json!({ "name": "odd.name", "arguments": {} });
        assert_eq!(client.ask("tools/call", params).await["code"], -32602);
    }
}

#[tokio::test]
async fn a_tool_that_the_operator_renames_has_this_name_for_clients_without_a_prefix_too() {
    for (era, of_server) in pairs() {
        let renamed = server_with("s", of_server, |client| {
            client.rename("mixed", "both").rename("odd.name", "even").describe("odd.name", "Even.")
        });
        let engine = engine().provider(Arc::new(renamed.clone())).build().unwrap();
        let gateway = Gateway::builder(engine).watch(&renamed).prefix("s", "").build();
        let (mut client, _) = Raw::of(&gateway, era, Access::new(), json!({})).await;
        let listed = client.ask("tools/list", json!({})).await;
        let tools = listed["tools"].as_array().unwrap();
        let find = |name: &str| tools.iter().find(|tool| tool["name"] == name);
        assert!(find("both").is_some() && find("mixed").is_none(), "{listed}");
        assert_eq!(find("even").unwrap()["description"], "Even.", "{listed}");
        assert!(find("odd.name").is_none(), "{listed}");
        for name in ["even", "mcp__s__even"] {
            let params = json!({ "name": name, "arguments": { "maybe": "x" } });
            let result = client.ask("tools/call", params).await;
            let said = unfence(result["content"][0]["text"].as_str().unwrap()).0.to_owned();
            assert_eq!(said, r#"{"maybe":"x"}"#, "{name}");
        }
        let params = json!({ "name": "odd.name", "arguments": {} });
        assert_eq!(client.ask("tools/call", params).await["code"], -32602);
    }
}

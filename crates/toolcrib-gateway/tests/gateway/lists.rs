//! `tools/list` is the menu.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::{
    FENCE_NOTICE, Policy, Rule, RuleConditions, SkillId, ToolContext, ToolProvider,
};
use toolcrib_engine::OnFailure;
use toolcrib_gateway::{Access, Gateway};

use super::support::{Client, ERAS, Era, Log, Source, billing, builder, engine, text, tool};

#[tokio::test]
async fn a_tool_is_listed_with_all_that_is_declared_of_it() {
    let find = builder("find")
        .title("Find an order")
        .read_only()
        .idempotent()
        .input_schema(json!({
            "type": "object",
            "properties": { "order": { "type": "integer" } },
            "required": ["order"],
        }))
        .output_schema(json!({ "type": "object", "properties": { "state": {} } }))
        .handler(|_: serde_json::Value, _| async { "here" })
        .unwrap();
    // A client before 2026-07-28 would refuse the whole list for this schema of results.
    let count = builder("count").output_schema(json!({ "type": "integer" }));
    let count = count.handler(|_: serde_json::Value, _| async { "1" }).unwrap();
    for era in ERAS {
        let client = Client::to(engine().tools([find.clone(), count.clone()]), era).await;
        let tools = client.peer.list_all_tools().await.unwrap();
        assert_eq!(
            serde_json::to_value(&tools[0]).unwrap(),
            json!({
                "name": "find",
                "title": "Find an order",
                "description": "What find does.",
                "inputSchema": find.input_schema(),
                "outputSchema": { "type": "object", "properties": { "state": {} } },
                "annotations": {
                    "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
                },
            }),
            "{era:?}"
        );
        assert!(tools[1].output_schema.is_none() && tools[1].title.is_none());
    }
}

/// Two servers with a tool of one name, and a tool of the engine.
fn servers() -> Gateway {
    let of = |server: &str, name: &str| {
        let says = format!("{server} ran");
        let body = move |_: serde_json::Value, _: ToolContext| {
            let says = says.clone();
            async move { says }
        };
        let tool = builder(&format!("mcp__{server}__{name}")).mcp_server(server);
        tool.origin(format!("mcp:{server}")).handler(body).unwrap()
    };
    let long = "reads_the_whole_history_of_a_repository";
    let tools =
        [tool("log"), of("git", "log"), of("git", long), of("hub", "log"), of("db", "query")];
    let denied = Rule::deny("no queries").tools(["mcp__db__*"]);
    let engine = engine().tools(tools).policy(Policy::of([denied])).build().unwrap();
    Gateway::builder(engine).prefix("git", "g_").prefix("hub", "g_").prefix("db", "").build()
}

#[tokio::test]
async fn a_client_sees_names_with_the_prefix_of_the_server_and_of_its_length() {
    let gateway = servers();
    for era in ERAS {
        let client = Client::of(&gateway, era, Access::new()).await;
        let long = "g_reads_the_whole_history_of_a_repository";
        assert_eq!(client.names().await, ["log", "g_log", long, "mcp__hub__log"], "{era:?}");
        for (name, ran) in [
            ("log", "log ran"),
            ("g_log", "git ran"),
            (long, "git ran"),
            ("mcp__git__log", "git ran"),
            ("mcp__hub__log", "hub ran"),
        ] {
            assert_eq!(text(&client.call(name, json!({})).await), ran, "{name}");
        }
        let short = Client::of(&gateway, era, Access::new().max_name_chars(20)).await;
        let names = short.names().await;
        assert_eq!((&*names[1], names[2].len()), ("g_log", 20));
        assert!(names[2].starts_with("g_reads_the"), "{names:?}");
        assert_eq!(text(&short.call(&names[2], json!({})).await), "git ran");
        assert_eq!(text(&short.call(long, json!({})).await), "git ran");
        // A rule decides about the whole name, whatever name a client uses.
        for hidden in ["query", "mcp__db__query", "g_query"] {
            assert_eq!(short.refused(hidden).await.code.0, -32602, "{hidden}");
        }
    }
}

#[tokio::test]
async fn a_stateless_listing_must_not_be_cached() {
    let client = Client::to(engine().tool(tool("a")), Era::Stateless).await;
    let listing = serde_json::to_value(client.peer.list_tools(None).await.unwrap()).unwrap();
    assert_eq!((&listing["ttlMs"], &listing["cacheScope"]), (&json!(0), &json!("private")));
    assert_eq!(listing["resultType"], "complete");
}

#[tokio::test]
async fn each_identity_has_its_own_menu() {
    let readers = RuleConditions { roles: vec!["reader".into()], ..RuleConditions::default() };
    let mut policy = Policy::of([Rule::deny("readers only read").tools(["write"]).when(readers)]);
    policy.roles.grant("bob", "reader");
    let engine = engine().tools([tool("read"), tool("write")]).policy(policy).build().unwrap();
    let gateway = Gateway::builder(engine).build();
    for era in ERAS {
        let ana = Client::of(&gateway, era, Access::new().principal("ana")).await;
        let bob = Client::of(&gateway, era, Access::new().principal("bob")).await;
        assert_eq!(ana.names().await, ["read", "write"], "{era:?}");
        assert_eq!(bob.names().await, ["read"], "{era:?}");
    }
}

#[tokio::test]
async fn only_a_session_is_offered_read_skill_and_is_told_of_it() {
    let desk = || engine().tools([tool("refund"), tool("note")]).skills(billing());
    let session = Client::to(desk(), Era::Sessions).await;
    assert_eq!(session.names().await, ["refund", "note", "read_skill"]);
    let told = session.peer.peer_info().unwrap().instructions.clone().unwrap();
    assert!(told.contains("`read_skill`"), "{told}");

    let gateway = Gateway::builder(desk().build().unwrap()).instructions("The desk.").build();
    let stateless = Client::of(&gateway, Era::Stateless, Access::new()).await;
    assert_eq!(stateless.names().await, ["refund", "note"]);
    let told = stateless.peer.peer_info().unwrap().instructions.clone().unwrap();
    assert_eq!(told, format!("The desk.\n{FENCE_NOTICE}"));

    let billing = SkillId::new("billing").unwrap();
    for (era, menu) in
        [(Era::Sessions, &["refund", "read_skill"][..]), (Era::Stateless, &["refund"])]
    {
        let preset = Client::of(&gateway, era, Access::new().skill(billing.clone())).await;
        assert_eq!(preset.names().await, menu, "{era:?}");
        let told = preset.peer.peer_info().unwrap().instructions.clone().unwrap();
        let body = "Skill `billing` is active. Its instructions:\n\nHow to do billing.";
        assert!(told.contains(body) && !told.contains("`read_skill`"), "{told}");
    }
}

#[tokio::test]
async fn an_unknown_skill_of_an_access_is_refused_before_serving() {
    let gateway = Gateway::builder(engine().skills(billing()).build().unwrap()).build();
    let access = Access::new().skill(SkillId::new("biling").unwrap());
    let (stdin, stdout) = tokio::io::duplex(64);
    let refused = gateway.serve_stdio(stdin, stdout, access, Default::default()).await.unwrap_err();
    assert!(refused.to_string().contains("unknown skill `biling`"), "{refused}");
}

#[tokio::test]
async fn the_cause_of_a_failed_source_is_only_in_the_log() {
    let source = Arc::new(Source::default());
    *source.1.lock().unwrap() = Some("cannot reach 10.0.0.7 with hunter2".to_owned());
    let engine = engine().tool(tool("a")).provider(source.clone()).build().unwrap();
    for era in ERAS {
        let log = Log::default();
        let gateway = Gateway::builder(engine.clone()).access_log(log.listener()).build();
        let client = Client::of(&gateway, era, Access::new()).await;
        let error = match client.peer.list_tools(None).await {
            Err(rmcp::ServiceError::McpError(error)) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(error.code.0, -32603);
        assert!(!error.message.contains("10.0.0.7"), "{error:?}");
        assert_eq!(client.refused("a").await.code.0, -32603);
        for method in ["tools/list", "tools/call"] {
            let logged = log.of(method)[0]["error"].as_str().unwrap().to_owned();
            assert!(logged.contains("10.0.0.7"), "{logged}");
        }
    }
}

#[tokio::test]
async fn a_source_that_is_left_out_is_noticed_in_each_listing() {
    let source = Arc::new(Source::default());
    *source.0.lock().unwrap() = vec![tool("one")];
    let provider: Arc<dyn ToolProvider> = source.clone();
    let engine = engine().tool(tool("a")).provider_with(provider, OnFailure::Omit).build().unwrap();
    for era in ERAS {
        *source.1.lock().unwrap() = None;
        let log = Log::default();
        let gateway = Gateway::builder(engine.clone()).access_log(log.listener()).build();
        let client = Client::of(&gateway, era, Access::new()).await;
        assert_eq!(client.peer.list_tools(None).await.unwrap().meta, None);
        *source.1.lock().unwrap() = Some("cannot reach 10.0.0.7".to_owned());
        for _ in 0..2 {
            let listing = client.peer.list_tools(None).await.unwrap();
            assert_eq!(listing.tools.len(), 1);
            let notices = listing.meta.unwrap()["toolcrib/notices"].to_string();
            assert!(notices.contains("mcp:switch") && !notices.contains("10.0.0.7"), "{notices}");
        }
        let logged = &log.of("tools/list")[1];
        assert!(logged["notices"][0]["reason"].as_str().unwrap().contains("10.0.0.7"));
        assert_eq!(logged["remote"][0]["withheld_by"], "discovery");
        assert_eq!(logged["remote"][0]["origin"], "mcp:switch");
    }
}

#[tokio::test]
async fn the_list_of_tools_has_one_page_and_refuses_cursors() {
    let client = Client::to(engine().tool(tool("a")), Era::Sessions).await;
    let listing = client.peer.list_tools(None).await.unwrap();
    assert_eq!(listing.next_cursor, None);
    let page = rmcp::model::PaginatedRequestParams::default().with_cursor(Some("2".to_owned()));
    assert!(client.peer.list_tools(Some(page)).await.is_err());
}

#[tokio::test]
async fn a_denied_tool_is_neither_listed_nor_called() {
    let policy = Policy::of([Rule::deny("no writing").tools(["write"])]);
    for era in ERAS {
        let engine = engine().tools([tool("read"), tool("write")]).policy(policy.clone());
        let client = Client::to(engine, era).await;
        assert_eq!(client.names().await, ["read"]);
        let error = client.refused("write").await;
        assert_eq!(error.code.0, -32602);
        assert_eq!(error.data, Some(json!({ "code": "not_available" })));
        // The same error as for an unknown name, except for the name.
        let unknown = client.refused("writ3").await;
        assert_eq!(unknown.message.replace("writ3", "write"), error.message);
    }
}

//! The recipes of the documentation, each against a server that behaves as theirs do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_core::{CacheOptions, KeyField, ToolCall, ToolResult, Ttl, cached};
use toolcrib_engine::{Engine, Redactor, TurnOptions};
use toolcrib_tools::{
    http::{HttpToolSpec, Method},
    hub::{HubPointers, HubSpec},
};

use crate::support::{SECRET, Server, build, client, fetch, json, names, status, vault};

fn headers(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

async fn call(engine: &Engine, options: TurnOptions, name: &str, args: Value) -> ToolResult {
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![ToolCall::new("1", name, args)]).await.remove(0)
}

#[tokio::test]
async fn a_marketplace_is_read_with_pages_a_cursor_and_a_key() {
    let tool = |slug: &str| {
        json!({
            "slug": slug,
            "description": format!("Does {slug}."),
            "input_parameters": {
                "type": "object",
                "properties": { "to": { "type": "string" } },
                "required": ["to"],
            },
        })
    };
    let server = Server::start(move |asked| {
        if asked.header("x-api-key") != Some(SECRET) {
            return status(401, &[], "");
        }
        match (asked.uri.path(), asked.uri.query().unwrap_or_default()) {
            ("/api/v3/tools", "limit=2") => json(&json!({
                "items": [tool("SLACK_SEND"), tool("GMAIL_SEND")],
                "next_cursor": "b2Zmc2V0OjI=",
            })),
            ("/api/v3/tools", "limit=2&cursor=b2Zmc2V0OjI%3D") => {
                json(&json!({ "items": [tool("GITHUB_STAR")], "next_cursor": null }))
            }
            ("/api/v3/tools/execute/GMAIL_SEND", "") => {
                json(&json!({ "successful": true, "data": { "id": "m1" } }))
            }
            other => panic!("{other:?}"),
        }
    })
    .await;

    let key = [("x-api-key", "secret:KEY")];
    let mut spec = HubSpec::new(
        "composio",
        server.url("/api/v3/tools?limit=2&cursor={cursor}"),
        Method::POST,
        server.url("/api/v3/tools/execute/{tool}"),
    );
    spec.headers = headers(&key);
    spec.pointers = HubPointers {
        list: "/items".to_owned(),
        name: "/slug".to_owned(),
        schema: "/input_parameters".to_owned(),
        next: Some("/next_cursor".to_owned()),
        ..HubPointers::default()
    };
    spec.call = HttpToolSpec {
        headers: headers(&key),
        body: Some(json!({ "user_id": "{principal}", "arguments": "{arguments}" })),
        pointer: Some("/data".to_owned()),
        ..spec.call
    };
    let hub = spec.build(&client(), Some(Arc::new(vault()))).unwrap();
    let engine = Engine::builder()
        .redactor(Redactor::default())
        .secrets(vault())
        .provider(hub.provider())
        .build()
        .unwrap();
    let ada = || TurnOptions::default().principal("ada");
    let result = call(&engine, ada(), "GMAIL_SEND", json!({ "to": "bob" })).await;
    assert_eq!(&*result.value, r#"{"id":"m1"}"#);
    assert!(result.text.contains("untrusted"), "it is fenced: {}", result.text);
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[2].json(), json!({ "user_id": "ada", "arguments": { "to": "bob" } }));
    assert_eq!(asked[2].header("x-api-key"), Some(SECRET));

    // Sorted by their own names, whatever order the pages have.
    assert_eq!(names(&fetch(&hub).await.unwrap()), ["GITHUB_STAR", "GMAIL_SEND", "SLACK_SEND"]);
    // Validated by its own schema, and refused without a principal.
    let invalid = call(&engine, ada(), "GMAIL_SEND", json!({})).await;
    assert_eq!(invalid.code.unwrap().as_str(), "input_invalid");
    let nobody = call(&engine, TurnOptions::default(), "GMAIL_SEND", json!({ "to": "bob" })).await;
    assert_eq!(nobody.code.unwrap().as_str(), "not_available");
}

#[tokio::test]
async fn the_registry_of_mcp_lists_servers_whose_entries_can_be_read() {
    let entry = |name: &str, about: &str| {
        let server = json!({ "name": name, "description": about, "version": "1.2.0" });
        json!({ "server": server, "_meta": { "status": "active" } })
    };
    let server = Server::start(move |asked| {
        match (asked.uri.path(), asked.uri.query().unwrap_or_default()) {
            ("/v0/servers", "version=latest&limit=2") => json(&json!({
                "servers": [entry("io.github.ada/files", "Reads files."), entry("com.example/mail", "Mail.")],
                "metadata": { "nextCursor": "com.example/mail:1.2.0", "count": 2 },
            })),
            ("/v0/servers", "version=latest&limit=2&cursor=com.example%2Fmail%3A1.2.0") => {
                json(&json!({ "servers": [entry("org.example/time", "Time.")], "metadata": { "count": 1 } }))
            }
            ("/v0/servers/io.github.ada%2Ffiles/versions/latest", "") => {
                json(&entry("io.github.ada/files", "Reads files."))
            }
            other => panic!("{other:?}"),
        }
    })
    .await;
    let mut spec = HubSpec::new(
        "registry",
        server.url("/v0/servers?version=latest&limit=2&cursor={cursor}"),
        Method::GET,
        server.url("/v0/servers/{tool}/versions/latest"),
    );
    spec.pointers = HubPointers {
        list: "/servers".to_owned(),
        name: "/server/name".to_owned(),
        description: "/server/description".to_owned(),
        next: Some("/metadata/nextCursor".to_owned()),
        ..HubPointers::default()
    };
    let hub = spec.build(&client(), None).unwrap();
    let listed = fetch(&hub).await.unwrap();
    let listed = names(&listed);
    assert_eq!(listed.len(), 3, "{listed:?}");
    let files = listed.iter().find(|name| name.contains("files")).unwrap().to_string();
    let engine = Engine::builder().provider(hub.provider()).build().unwrap();
    let result = call(&engine, TurnOptions::default(), &files, json!({})).await;
    assert!(result.value.contains("io.github.ada/files"), "{result:?}");
}

#[tokio::test]
async fn a_registry_that_says_when_nothing_changed() {
    let version = Arc::new(AtomicUsize::new(1));
    let current = Arc::clone(&version);
    let server = Server::start(move |asked| {
        let version = current.load(Ordering::SeqCst);
        let etag = format!("\"v{version}\"");
        if asked.header("if-none-match") == Some(&etag) {
            return status(304, &[("etag", &etag)], "");
        }
        let tools = json!({ "tools": [
            { "name": "search", "description": "Finds.", "inputSchema": { "type": "object" } },
            { "name": "fetch", "description": format!("Gets, as of {version}.") },
        ] });
        status(200, &[("etag", &etag), ("content-type", "application/json")], tools.to_string())
    })
    .await;
    let mut spec = HubSpec::new(
        "registry",
        server.url("/v0/tools"),
        Method::POST,
        server.url("/v0/tools/{tool}/call"),
    );
    spec.pointers = HubPointers {
        list: "/tools".to_owned(),
        schema: "/inputSchema".to_owned(),
        ..HubPointers::default()
    };
    spec.call.body = Some(json!("{arguments}"));
    spec.prefix = "reg_".to_owned();
    let hub = build(spec);
    let first = fetch(&hub).await.unwrap();
    assert_eq!(names(&first), ["reg_fetch", "reg_search"]);
    assert_eq!(hub.provider().covers(), Some("reg_*"));
    let unchanged = fetch(&hub).await.unwrap();
    assert!(first.same(&unchanged), "304: the very same tools");
    version.store(2, Ordering::SeqCst);
    let changed = fetch(&hub).await.unwrap();
    assert!(!first.offered()[0].same(&changed.offered()[0]));
    assert_eq!(changed.offered()[0].description(), "Gets, as of 2.");
    assert!(first.offered()[1].same(&changed.offered()[1]), "what did not change is the same");
    let told: Vec<_> = server
        .asked()
        .iter()
        .map(|asked| asked.header("if-none-match").map(str::to_owned))
        .collect();
    assert_eq!(told, [None, Some("\"v1\"".to_owned()), Some("\"v1\"".to_owned())]);
}

#[tokio::test]
async fn a_policy_service_offers_each_tenant_separate_tools() {
    let server = Server::start(|asked| {
        let tenant = asked.uri.path().split('/').nth(2).unwrap().to_owned();
        match asked.uri.path().split('/').nth(3) {
            Some("tools") => json(&json!([{ "name": format!("only_{tenant}") }])),
            _ => json(&json!({ "tenant": tenant, "by": asked.header("x-user") })),
        }
    })
    .await;
    let mut spec = HubSpec::new(
        "policy",
        server.url("/tenants/{tenant}/tools"),
        Method::POST,
        server.url("/tenants/{tenant}/run/{tool}"),
    );
    spec.call.headers = headers(&[("x-user", "{principal}")]);
    spec.call.body = Some(json!("{arguments}"));
    let options = CacheOptions::new([KeyField::Tenant], Ttl::after(Duration::from_secs(3600)));
    let hub = build(spec);
    let engine = Engine::builder()
        .redactor(Redactor::default())
        .provider(cached(hub.provider(), options))
        .build()
        .unwrap();
    for tenant in ["acme", "zeta", "acme", "zeta"] {
        let options = || TurnOptions::default().tenant(tenant).principal("ada");
        let mut turn = engine.turn(options()).unwrap();
        let iteration = turn.iteration().await.unwrap();
        let offered: Vec<_> = iteration.menu().names().map(ToString::to_string).collect();
        assert_eq!(offered, [format!("only_{tenant}")]);
        let result = call(&engine, options(), &offered[0], json!({})).await;
        assert_eq!(&*result.value, format!(r#"{{"tenant":"{tenant}","by":"ada"}}"#));
    }
    let listings: Vec<_> =
        server.lines().into_iter().filter(|line| line.starts_with("GET")).collect();
    assert_eq!(listings, ["GET /tenants/acme/tools", "GET /tenants/zeta/tools"]);
    // A name that would lead elsewhere is refused.
    let sly = TurnOptions::default().tenant("acme/../zeta").principal("ada");
    let mut turn = engine.turn(sly).unwrap();
    let before = server.lines().len();
    let Err(error) = turn.iteration().await else { panic!("the tenant led elsewhere") };
    assert!(error.to_string().contains("`tenant` must not contain"), "{error}");
    assert_eq!(server.lines().len(), before);
}

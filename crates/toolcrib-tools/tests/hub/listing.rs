//! From a catalog to tools: names, order, withheld tools.

use serde_json::json;
use toolcrib_core::ToolHub as _;

use crate::support::{Server, build, fetch, in_pages, json, names, of, spec};

#[tokio::test]
async fn an_invalid_tool_leaves_the_others_of_its_catalog() {
    let server = Server::of(json!([
        { "name": "good", "description": "Works." },
        { "name": "list", "input_schema": { "type": "array" } },
        { "name": "large", "description": "x".repeat(70_000) },
        { "name": "dot.ted", "description": " " },
        { "description": "Has no name." },
        { "name": "twin", "description": "b" },
        { "name": "twin", "description": "a" },
        "nonsense",
    ]))
    .await;
    let catalog = fetch(&build(spec(&server, "/"))).await.unwrap();
    assert_eq!(names(&catalog), ["dot_ted_0a1196fa", "good", "twin"]);
    assert_eq!(catalog.offered()[0].description(), "dot.ted");
    assert_eq!(catalog.offered()[2].description(), "b", "by content, not by place");
    assert_eq!(catalog.offered()[1].origin(), "hub:h");
    assert_eq!(catalog.offered()[1].toolset(), Some("h"));
    assert!(catalog.offered()[1].untrusted() && catalog.offered()[1].annotations().destructive);
    let mut held: Vec<_> = catalog
        .withheld_by_provider()
        .iter()
        .map(|held| {
            assert_eq!(&*held.gate, "hub:h");
            format!("{}: {}", held.tool.name(), held.reason)
        })
        .collect();
    held.sort();
    assert_eq!(
        held,
        [
            "large: its definition has 70066 bytes; the limit is 65536",
            "list: the input schema of tool `list` must be of `type: \"object\"`",
            "twin: another listed tool has the same name",
            "unnamed: the catalog gives it no name",
            "unnamed: the catalog gives it no name",
        ]
    );
}

#[tokio::test]
async fn the_order_of_a_catalog_does_not_change_its_tools() {
    let page = |order: [&str; 3]| json!(order.map(|name| json!({ "name": name })));
    let flips = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let server =
        Server::start(move |_| match flips.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => json(&page(["b", "a", "c"])),
            _ => json(&page(["c", "b", "a"])),
        })
        .await;
    let hub = build(spec(&server, "/"));
    let (first, second) = (fetch(&hub).await.unwrap(), fetch(&hub).await.unwrap());
    assert_eq!(names(&first), ["a", "b", "c"]);
    assert!(first.same(&second));
}

#[tokio::test]
async fn pages_are_followed_by_their_url_on_the_same_server() {
    let server = Server::start(|asked| match asked.uri.path() {
        "/a/1" => json(&json!({ "tools": [{ "name": "one" }], "next": "2?x=y" })),
        "/a/2" => json(&json!({ "tools": [{ "name": "two" }], "next": "/3" })),
        "/3" => json(&json!({ "tools": [], "next": "" })),
        other => panic!("{other}"),
    })
    .await;
    let catalog = fetch(&build(in_pages(&server, "/a/1"))).await.unwrap();
    assert_eq!(names(&catalog), ["one", "two"]);
    assert_eq!(server.lines(), ["GET /a/1", "GET /a/2?x=y", "GET /3"]);
}

#[tokio::test]
async fn a_catalog_is_cached_for_each_identity() {
    let server =
        Server::start(|asked| json(&json!([{ "name": "t", "description": asked.uri.path() }])))
            .await;
    let hub = build(spec(&server, "/{tenant}"));
    let list = |tenant: &'static str| {
        let hub = hub.clone();
        async move { hub.fetch_catalog(&of(Some(tenant), None).into()).await.unwrap() }
    };
    let (a, b) = (list("a").await, list("b").await);
    assert_eq!(a.offered()[0].description(), "/a");
    assert_eq!(b.offered()[0].description(), "/b");
    assert!(list("a").await.same(&a) && list("b").await.same(&b));
}

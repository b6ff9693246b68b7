//! Lists of tools that break rules, and starts that end badly.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use toolcrib_mcp::{McpClient, McpClientBuilder, pipe_mcp_client};

use super::{
    call,
    raw::{raw, raw_with},
};
use crate::client::support::{mock, names, withheld_by_provider};

/// A client of a server before 2026-07-28 that answers each request for a page as `page` does: by the
/// page's number and its cursor.
fn paged(
    change: impl FnOnce(McpClientBuilder) -> McpClientBuilder,
    page: impl Fn(usize, Option<&str>) -> Value + Send + 'static,
) -> McpClient {
    paged_in_era(true, change, page)
}

fn paged_in_era(
    is_legacy: bool,
    change: impl FnOnce(McpClientBuilder) -> McpClientBuilder,
    page: impl Fn(usize, Option<&str>) -> Value + Send + 'static,
) -> McpClient {
    let (client, mut connections) = raw_with(64 * 1024, change);
    tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        match is_legacy {
            true => server.greet_legacy().await,
            false => server.greet_modern(json!({ "tools": {} })).await,
        }
        for number in 0.. {
            let Some(list) = server.read().await else { return };
            server.answer(&list, page(number, list["params"]["cursor"].as_str())).await;
        }
    });
    client
}

fn listing(tools: Value) -> McpClient {
    paged(|client| client, move |_, _| json!({ "tools": tools }))
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "A tool.", "inputSchema": { "type": "object" } })
}

/// The tool with another member.
fn with(name: &str, member: &str, value: Value) -> Value {
    let mut tool = tool(name);
    tool[member] = value;
    tool
}

#[tokio::test]
async fn a_list_without_end_is_given_up_and_names_the_server() {
    let error = async |page: fn(usize, Option<&str>) -> Value| {
        paged(|client| client, page).tools().await.unwrap_err().to_string()
    };
    let start = "MCP server `raw` does not list its tools: ";
    let endless = error(|number, _| json!({ "tools": [], "nextCursor": number.to_string() })).await;
    let says = format!("{start}its tools have more than 1000 pages");
    assert!(endless.starts_with(&says), "{endless}");

    let many = error(|_, _| json!({ "tools": vec![tool("a"); 10_001] })).await;
    assert!(many.starts_with(&format!("{start}it lists more than 10000 tools")), "{many}");
}

#[tokio::test]
async fn a_repeated_cursor_of_a_server_since_2026_07_28_fails_its_list() {
    let client = paged_in_era(
        false,
        |client| client,
        |_, cursor| match cursor {
            None => json!({ "tools": [tool("a")], "nextCursor": "1" }),
            Some("1") => json!({ "tools": [tool("b")], "nextCursor": "2" }),
            Some(_) => json!({ "tools": [tool("c")], "nextCursor": "1" }),
        },
    );
    let error = client.tools().await.unwrap_err().to_string();
    let says =
        "MCP server `raw` does not list its tools: page 3 of its tools repeats an earlier cursor";
    assert!(error.starts_with(says), "{error}");
    assert_eq!(client.status().list_warning, None);
}

#[tokio::test]
async fn an_empty_or_repeated_cursor_ends_the_list_of_an_older_server_with_a_warning() {
    type Case = (fn(usize, Option<&str>) -> Value, &'static str);
    let cases: [Case; 3] = [
        (|_, _| json!({ "tools": [tool("a")], "nextCursor": "" }), "an empty cursor"),
        (
            |_, cursor| match cursor {
                None => json!({ "tools": [tool("a")], "nextCursor": "1" }),
                Some(_) => json!({ "tools": [tool("b")], "nextCursor": "1" }),
            },
            "repeats a cursor",
        ),
        // A server that ignores the cursor.
        (|_, _| json!({ "tools": [tool("a")], "nextCursor": "1" }), "repeats a cursor"),
    ];
    for (page, says) in cases {
        let client = paged(|client| client, page);
        assert!(names(&client.tools().await.unwrap()).contains(&"mcp__raw__a"));
        assert!(client.catalog().await.unwrap().withheld_by_provider().is_empty());
        let warning = client.status().list_warning.unwrap();
        assert!(warning.contains(says), "{warning}");
    }
}

#[tokio::test]
async fn null_properties_are_absent_and_only_described_arguments_are_required() {
    let null = json!({ "type": "object", "properties": null });
    let ghost = json!({ "type": "object", "properties": { "a": {} }, "required": ["a", "ghost"] });
    let client = listing(json!([with("a", "inputSchema", null), with("b", "inputSchema", ghost)]));
    let tools = client.tools().await.unwrap();
    assert_eq!(names(&tools), ["mcp__raw__a", "mcp__raw__b"]);
    assert_eq!(tools[1].input_schema()["required"], json!(["a"]));
}

#[tokio::test]
async fn a_tool_that_cannot_be_offered_is_withheld_and_spoils_nothing() {
    let schema = |name: &str, schema: Value| with(name, "inputSchema", schema);
    let large = json!({ "type": "object", "description": "x".repeat(70_000) });
    let catalog = listing(json!([
        schema("a_array", json!({ "type": "array" })),
        schema("c_large", large),
        tool("d_twice"),
        schema("d_twice", json!({ "type": "object", "title": "another" })),
        tool("e_good"),
        { "inputSchema": { "type": "object" } },
    ]))
    .catalog()
    .await
    .unwrap();
    assert_eq!(names(catalog.offered()), ["mcp__raw__d_twice", "mcp__raw__e_good"]);
    let reasons = withheld_by_provider(&catalog);
    assert_eq!(reasons[0], "mcp__raw__unnamed: the server gives it no name");
    assert_eq!(reasons[1], "mcp__raw__d_twice: another listed tool has the same name");
    assert!(reasons[2].contains("must be of `type: \"object\"`"), "{}", reasons[2]);
    assert!(reasons[3].ends_with(" bytes; the limit is 65536"), "{}", reasons[3]);
    assert!(catalog.withheld_by_provider().iter().all(|held| &*held.gate == "mcp:raw"));
}

#[tokio::test]
async fn a_definition_that_cannot_be_read_costs_only_its_tool() {
    let deep = (0..200).fold(json!({}), |inner, _| json!({ "not": inner }));
    let expanded = json!({ "type": "object", "$serde_json::private::RawValue": "{}" });
    let catalog = listing(json!([
        with("a_expanded", "inputSchema", expanded),
        with("b_deep", "inputSchema", deep.clone()),
        { "inputSchema": deep },
        tool("e_good"),
    ]))
    .catalog()
    .await
    .unwrap();
    assert_eq!(names(catalog.offered()), ["mcp__raw__e_good"]);
    let reasons = withheld_by_provider(&catalog);
    let unread = |tool: &str| format!("mcp__raw__{tool}: its definition cannot be read: ");
    assert!(reasons[0].starts_with(&unread("unnamed")), "{reasons:?}");
    let expected = format!("{}a key in it is reserved by `serde_json`", unread("a_expanded"));
    assert_eq!(reasons[1], expected);
    let expected = format!("{}recursion limit exceeded", unread("b_deep"));
    assert!(reasons[2].starts_with(&expected), "{reasons:?}");
}

#[tokio::test]
async fn the_order_of_a_servers_list_does_not_change_the_menu() {
    let mut tools = vec![tool("c"), tool("b"), with("b", "title", json!("Other")), tool("a")];
    let mut seen = Vec::new();
    for _ in 0..tools.len() {
        tools.rotate_left(1);
        let offered = listing(json!(tools)).tools().await.unwrap();
        let shown = offered.iter().map(|t| (t.name().to_string(), t.title().map(str::to_owned)));
        seen.push(shown.collect::<Vec<_>>());
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[tokio::test]
async fn a_tool_without_a_description_is_described_by_its_title_or_its_name() {
    let blank = |name| with(name, "description", json!("  "));
    let mut titled = blank("a");
    titled["title"] = json!("The A");
    let tools = listing(json!([titled, blank("b")])).tools().await.unwrap();
    assert_eq!((tools[0].description(), tools[1].description()), ("The A", "b"));
}

#[tokio::test]
async fn a_trusted_server_without_annotations_has_the_protocols_defaults() {
    let tools = json!([
        tool("a"),
        with("b", "annotations", json!({ "destructiveHint": false })),
        with("c", "annotations", json!({ "readOnlyHint": true })),
    ]);
    let listed = tools.clone();
    let client = paged(McpClientBuilder::trusted, move |_, _| json!({ "tools": listed }));
    let said: Vec<_> = client.tools().await.unwrap().iter().map(|t| t.annotations()).collect();
    let effects: Vec<_> = said.iter().map(|a| (a.read_only, a.destructive)).collect();
    assert_eq!(effects, [(false, true), (false, false), (true, false)]);

    for tool in listing(tools).tools().await.unwrap() {
        let said = tool.annotations();
        assert_eq!((said.read_only, said.destructive, said.idempotent), (false, true, false));
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_ends_in_time_and_leaves_nothing() {
    let allowed = Duration::from_secs(3);
    let (client, mut connections) = raw_with(4096, |client| client.start_timeout(allowed));
    let began = Instant::now();
    let error = client.tools().await.unwrap_err().to_string();
    assert!(error.contains("it was not connected within 3s"), "{error}");
    assert_eq!(began.elapsed(), allowed);
    let mut server = connections.recv().await.unwrap();
    server.expect("server/discover").await;
    assert!(server.read().await.is_none(), "the pipe is still open");
}

#[tokio::test(start_paused = true)]
async fn a_start_outlives_those_who_wait_for_it_and_ends_with_the_client() {
    let (client, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        sleep(Duration::from_secs(8)).await;
        server.greet_legacy().await;
        server.list().await;
        (server, connections)
    });
    let waits = |client: &McpClient| {
        let client = client.clone();
        tokio::spawn(async move { client.tools().await.map(|tools| tools.len()) })
    };
    let (first, second) = (waits(&client), waits(&client));
    sleep(Duration::from_secs(1)).await;
    first.abort();
    sleep(Duration::from_secs(1)).await;
    second.abort();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(client.tools().await.unwrap().len(), 1);
    let (_server, mut connections) = server.await.unwrap();
    assert!(connections.try_recv().is_err(), "it was started twice");

    let (client, mut connections) = raw(4096);
    let waiting = waits(&client);
    let mut server = connections.recv().await.unwrap();
    server.expect("server/discover").await;
    client.close().await;
    assert!(server.read().await.is_none(), "the pipe is still open");
    waiting.await.unwrap().unwrap_err();
}

#[tokio::test]
async fn a_start_that_panics_is_a_failure_like_others() {
    let open = || -> std::io::Result<tokio::io::DuplexStream> { panic!("a bug") };
    let error = pipe_mcp_client("raw", open).build().unwrap().tools().await.unwrap_err();
    assert!(error.to_string().contains("what connects to it panicked: a bug"), "{error}");
}

#[test]
fn a_connection_whose_runtime_ended_is_not_used_by_the_next() {
    let (client, server) = mock(&["t"]).build().unwrap();
    for connections in 1..=2 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let tool = runtime.block_on(client.refresh()).unwrap().remove(0);
        assert_eq!(runtime.block_on(call(&tool)).unwrap().value, "t: {}");
        assert_eq!(server.connections(), connections);
    }
}

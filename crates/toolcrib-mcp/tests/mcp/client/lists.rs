//! Listings, and when the server is queried for them.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::Instant;
use toolcrib_core::{
    CancellationToken, Catalog, ErrorCode, Identity, ListContext, Listing, Policy, Rule,
    ToolContext, ToolProvider as _, unfence,
};
use toolcrib_engine::{OnFailure, TurnOptions};
use toolcrib_mcp::{McpClient, McpClientBuilder};

use super::support::{
    builder, built, echo, engine, engine_of, menu, mock, names, offered, once, withheld_by_provider,
};

fn ask(client: &McpClient) -> Listing {
    let cx = ListContext::new(Arc::new(Identity::conversation("c")), CancellationToken::new());
    Arc::new(client.clone()).list(&cx)
}

fn now(listing: Listing) -> Catalog {
    match listing {
        Listing::Now(answer) => answer.unwrap(),
        Listing::Later(_) => panic!("the server is asked"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_offers_and_calls_what_a_server_lists() {
    for legacy in [false, true] {
        let builder = mock(&["b", "a", "c"]);
        let (client, server) = built(if legacy { builder.legacy() } else { builder });
        let engine = engine_of(&client, OnFailure::Fail);
        assert_eq!(server.connections(), 0, "nothing starts before it is asked for");

        assert_eq!(offered(&engine).await, ["mcp__mock__a", "mcp__mock__b", "mcp__mock__c"]);
        let result = once(&engine, "mcp__mock__b", json!({ "x": 1 })).await;
        assert_eq!(&*result.value, r#"b: {"x":1}"#);
        assert!(result.text.starts_with("<untrusted "), "{}", result.text);
        assert_eq!(unfence(&result.text), (&*result.value, ""));

        let status = client.status();
        let protocol = status.protocol.as_deref();
        assert_eq!(protocol, Some(if legacy { "2025-11-25" } else { "2026-07-28" }));
        assert_eq!((status.server.as_deref(), status.tools), (Some("mock"), Some(3)));
    }
}

#[tokio::test(start_paused = true)]
async fn each_tool_says_where_it_is_from_and_nothing_is_believed_of_it() {
    let gentle = builder("look").read_only().idempotent();
    let gentle = gentle.handler(|_: serde_json::Value, _: ToolContext| async {}).unwrap();
    let (client, _server) = built(toolcrib_mcp::mock_mcp_client([gentle.clone()]));
    let tool = client.tools().await.unwrap().remove(0);
    assert_eq!((tool.origin(), tool.toolset()), ("mcp:mock", Some("mcp")));
    assert!(tool.untrusted());
    let said = tool.annotations();
    assert_eq!((said.read_only, said.destructive, said.idempotent), (false, true, false));

    let trusted = toolcrib_mcp::mock_mcp_client([gentle]).client(McpClientBuilder::trusted);
    let (client, _server) = built(trusted);
    let tool = client.tools().await.unwrap().remove(0);
    assert!(tool.untrusted(), "trust is in what it says of its tools, not in what they bring");
    let said = tool.annotations();
    assert_eq!((said.read_only, said.destructive, said.idempotent), (true, false, true));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_holds_is_answered_at_once_and_is_the_same() {
    let (client, server) = built(mock(&["a", "b"]));
    assert!(matches!(ask(&client), Listing::Later(_)));
    client.tools().await.unwrap();
    let (first, second) = (now(ask(&client)), now(ask(&client)));
    assert!(first.same(&second));
    assert_eq!(server.lists(), 1);

    // Asked again, an unchanged list has the very same tools.
    client.refresh().await.unwrap();
    assert_eq!(server.lists(), 2);
    assert!(now(ask(&client)).same(&first));
}

#[tokio::test(start_paused = true)]
async fn all_pages_are_followed() {
    let (client, server) = built(mock(&["e", "d", "c", "b", "a"]).page_size(2));
    let tools = client.tools().await.unwrap();
    assert_eq!(
        names(&tools),
        ["mcp__mock__a", "mcp__mock__b", "mcp__mock__c", "mcp__mock__d", "mcp__mock__e"]
    );
    assert_eq!(server.lists(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_announced_is_in_the_next_iteration() {
    for legacy in [false, true] {
        let builder = mock(&["a"]);
        let (client, server) = built(if legacy { builder.legacy() } else { builder });
        let engine = engine_of(&client, OnFailure::Fail);
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        assert_eq!(menu(&turn.iteration().await.unwrap()), ["mcp__mock__a"]);

        let kept = client.tools().await.unwrap().remove(0);
        let mut changes = client.changes();
        server.set_tools([echo("b"), echo("a")]).await;
        changes.changed().await.unwrap();
        let iteration = turn.iteration().await.unwrap();
        assert_eq!(menu(&iteration), ["mcp__mock__a", "mcp__mock__b"]);
        assert_eq!(iteration.menu().tools()[0].digest(), kept.digest());
        assert!(client.tools().await.unwrap()[0].same(&kept), "what did not change stays");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_outlives_a_listing_that_nobody_waited_for() {
    let (client, server) = built(mock(&["a"]));
    client.tools().await.unwrap();
    let mut changes = client.changes();
    server.set_tools([echo("b")]).await;
    changes.changed().await.unwrap();
    server.delay(Duration::from_secs(3_600));
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.tools().await }
    });
    while server.lists() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    waiting.abort();
    waiting.await.unwrap_err();
    server.delay(Duration::ZERO);
    assert_eq!(names(&client.tools().await.unwrap()), ["mcp__mock__b"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_slow_to_come_holds_nobody_up_twice() {
    let (client, server) = built(mock(&["a"]));
    let engine = engine_of(&client, OnFailure::Fail);
    assert_eq!(offered(&engine).await, ["mcp__mock__a"]);
    server.delay(Duration::from_secs(10));
    for first in [true, false] {
        let mut changes = client.changes();
        server.set_tools([echo(if first { "b" } else { "c" })]).await;
        changes.changed().await.unwrap();
        let before = if first { "mcp__mock__a" } else { "mcp__mock__b" };
        for again in [false, true] {
            let began = Instant::now();
            assert_eq!(offered(&engine).await, [before]);
            let waits = u64::from(first && !again);
            assert_eq!(began.elapsed().as_secs(), waits, "first: {first}, again: {again}");
        }
        tokio::time::sleep(Duration::from_secs(20)).await;
        let after = if first { "mcp__mock__b" } else { "mcp__mock__c" };
        assert_eq!(offered(&engine).await, [after]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_announcements_costs_a_few_listings_and_hides_no_change() {
    let (client, server) = built(mock(&["a"]));
    client.tools().await.unwrap();
    let mut changes = client.changes();
    // Ten seconds of it, and an iteration every 10 ms.
    for _ in 0..1_000 {
        server.announce_changes(3).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        client.tools().await.unwrap();
    }
    assert!(server.lists() < 12, "asked {} times", server.lists());

    changes.mark_unchanged();
    server.set_tools([echo("b")]).await;
    // It is noticed at the latest when the longest gap is over, and watchers are notified.
    let names = loop {
        changes.changed().await.unwrap();
        let tools = client.tools().await.unwrap();
        if *tools[0].name() == *"mcp__mock__b" {
            break names(&tools).len();
        }
    };
    assert_eq!(names, 1);

    // A change for real makes the next one count at once.
    changes.mark_unchanged();
    server.set_tools([echo("c")]).await;
    changes.changed().await.unwrap();
    assert_eq!(client.tools().await.unwrap()[0].name(), "mcp__mock__c");
}

#[tokio::test(start_paused = true)]
async fn what_the_operator_does_not_want_is_withheld_with_the_reason() {
    let wanted = mock(&["read_a", "read_b", "write_a"])
        .client(|client| client.include(["read_*"]).exclude(["*_b"]));
    let (client, _server) = built(wanted);
    let catalog = client.catalog().await.unwrap();
    assert_eq!(names(catalog.offered()), ["mcp__mock__read_a"]);
    assert_eq!(
        withheld_by_provider(&catalog),
        ["mcp__mock__read_b: in `exclude`", "mcp__mock__write_a: not in `include`"]
    );
    assert_eq!(client.status().withheld_by_provider, Some(2));

    let engine = engine_of(&client, OnFailure::Fail);
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let iteration = turn.iteration().await.unwrap();
    let why = iteration.withheld().tool("mcp__mock__write_a").unwrap();
    assert!(why.reason.contains("not in `include`"), "{why:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_two_names_is_offered_under_one_that_models_take() {
    let long = "x".repeat(64);
    let (client, _server) = built(mock(&[&long]));
    let tools = client.tools().await.unwrap();
    assert_eq!(tools[0].name().len(), 64);
    assert_eq!(tools[0].name(), client.name().tool_name(&long).as_str());
    let engine = engine().provider(Arc::new(client.clone())).build().unwrap();
    let result = once(&engine, tools[0].name(), json!({})).await;
    assert_eq!(*result.value, format!("{long}: {{}}"), "the way back is a map");
}

#[tokio::test(start_paused = true)]
async fn a_tool_has_the_name_and_the_description_that_the_operator_gives_it() {
    let renamed = |client: McpClientBuilder| {
        client.rename("git_log", "log").describe("git_log", "Lists commits.").include(["git_*"])
    };
    let (client, _server) = built(mock(&["git_log", "git_show", "log"]).client(renamed));
    let tools = client.tools().await.unwrap();
    assert_eq!(names(&tools), ["mcp__mock__log", "mcp__mock__git_show"]);
    assert_eq!(tools[0].description(), "Lists commits.");
    assert_eq!(client.tool_name("git_log"), "mcp__mock__log");
    assert_eq!(client.tool_name("git_show"), "mcp__mock__git_show");
    let engine = engine_of(&client, OnFailure::Fail);
    let result = once(&engine, "mcp__mock__log", json!({})).await;
    assert_eq!(&*result.value, "git_log: {}", "the server knows its own name only");
    let unknown = once(&engine, "mcp__mock__git_log", json!({})).await;
    assert_eq!(unknown.code.map(ErrorCode::as_str), Some("not_available"));
    // A rule that names the tool as the server does still applies.
    let denied = Policy::of([Rule::deny("closed").tools(["mcp__mock__git_log"])]);
    let engine = super::support::engine().provider(Arc::new(client.clone())).policy(denied);
    assert_eq!(offered(&engine.build().unwrap()).await, ["mcp__mock__git_show"]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_the_operator_has_given_belongs_to_no_other_tool_of_the_server() {
    const LONG: &str = "a_name_with_which_the_name_of_the_server_has_more_than_64";
    let renamed = |client: McpClientBuilder| {
        client.rename("read", "load").describe("raed", "Reads.").rename("gone", "writes")
    };
    let (client, _server) = built(mock(&["read", "load", "write"]).client(renamed));
    let catalog = client.catalog().await.unwrap();
    assert_eq!(names(catalog.offered()), ["mcp__mock__load", "mcp__mock__write"]);
    assert_eq!(
        withheld_by_provider(&catalog),
        ["mcp__mock__load: here, this is the name of the server's tool `read`"]
    );
    let result = once(&engine_of(&client, OnFailure::Fail), "mcp__mock__load", json!({})).await;
    assert_eq!(&*result.value, "read: {}");
    let unmatched = client.unmatched_patterns();
    let unmatched: Vec<_> = unmatched.iter().map(ToString::to_string).collect();
    assert!(unmatched[1].starts_with("`raed` in `tool` matches no tool"), "{unmatched:?}");
    assert!(unmatched[1].contains("did you mean `read`?"), "{unmatched:?}");
    for (own, name, problem) in [
        ("a", "b!", "`b!` cannot be the name of the tool `a`"),
        ("a", "", "`` cannot be the name of the tool `a`"),
        ("a", LONG, "cannot be the name of the tool `a`"),
        ("a", "read", "the tools `a` and `read` would both be called `read`"),
        ("a", "same", "the tools `a` and `other` would both be called `same`"),
    ] {
        let client = move |client: McpClientBuilder| {
            client.describe("read", "Reads.").rename("other", "same").rename(own, name)
        };
        let error = mock(&[]).client(client).build().unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn settings_of_the_client_are_those_of_its_tools() {
    let set = mock(&["a"])
        .client(|client| client.call_timeout(Duration::from_secs(3)).max_result_chars(500));
    let tool = built(set).0.tools().await.unwrap().remove(0);
    assert_eq!(tool.timeout(), Some(Duration::from_secs(3)));
    assert_eq!(tool.max_result_chars(), Some(500));

    let error = mock(&[]).client(|client| client.max_result_chars(5)).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "MCP server `mock`: `max_result_chars` is 5; it must be 100 or more, so that the note \
         about left-out text fits"
    );
    let error = mock(&[]).name("a__b").build().unwrap_err();
    assert!(error.to_string().contains("`a__b` is not a valid name of an MCP server"), "{error}");
}

//! Deferred tools: found by `search_tools`, called by `call_tool`, and never a way around a decision.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::{
    ArgumentMatch, Catalog, Effect, ErrorCode, EventKind, ListContext, Listing, Menu, Message,
    Policy, Rule, RuleConditions, Tool, ToolCall, ToolContext, ToolResult,
};
use toolcrib_engine::{
    CALL_TOOL, Deferral, Engine, EngineBuilder, Iteration, Limits, Reveal, SEARCH_TOOLS, Turn,
    TurnOptions,
};

use crate::support::{
    Log, batch, builder, call, engine, menu, once, policy, provider, rule_on, says, skill_id,
    skills, tool,
};

/// A deferred tool.
pub(crate) fn deferred(name: &str, description: &str) -> Tool {
    says(builder(name).description(description).deferred(true), "ran")
}

fn desk() -> EngineBuilder {
    engine().tools([
        tool("visible"),
        deferred("refund_payment", "Returns the money of a charge. Ask first."),
        deferred("find_order", "Looks up an order by its number."),
    ])
}

/// A turn and its first iteration, whose calls end with the turn.
async fn first(engine: &Engine) -> (Turn, Iteration) {
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let iteration = turn.iteration().await.unwrap();
    (turn, iteration)
}

/// The names of the definitions.
async fn defined(engine: &Engine) -> Vec<String> {
    menu(&first(engine).await.1)
}

fn through(name: &str, arguments: &Value) -> ToolCall {
    call(CALL_TOOL, json!({ "tool": name, "arguments": arguments }))
}

/// The names that a search returns for one need.
fn found(result: &ToolResult) -> Vec<String> {
    let lists: Value = serde_json::from_str(&result.value).unwrap();
    let tools = lists["found"][0]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn search(engine: &Engine, need: &str) -> ToolResult {
    once(engine, SEARCH_TOOLS, json!({ "needs": [need] })).await
}

#[tokio::test]
async fn a_deferred_tool_is_callable_and_not_in_the_definitions() {
    let engine = desk().build().unwrap();
    let (_turn, mut iteration) = first(&engine).await;
    assert_eq!(menu(&iteration), ["visible", SEARCH_TOOLS, CALL_TOOL]);
    assert!(!iteration.menu().rendering().contains("refund_payment"));
    assert!(iteration.withheld().is_empty());
    assert_eq!(iteration.menu().deferred().len(), 2);
    let results = iteration.execute(vec![through("find_order", &json!({}))]).await;
    assert_eq!(&*results[0].value, "ran");
    assert_eq!(&*results[0].name, "find_order");
    assert_eq!(results[0].called.as_deref(), Some(CALL_TOOL));
    let Message::Tool { name, .. } = results[0].message() else { panic!() };
    assert_eq!(&*name, CALL_TOOL, "a vendor expects the name that the model called");
}

#[tokio::test]
async fn without_deferred_tools_the_menu_is_as_before() {
    let engine =
        engine().tools([tool("a"), tool("b")]).defer(Deferral::new().above(2)).build().unwrap();
    assert_eq!(defined(&engine).await, ["a", "b"]);
    let result = once(&engine, CALL_TOOL, json!({ "tool": "a", "arguments": {} })).await;
    assert_eq!(result.code, Some(ErrorCode::NotAvailable));
}

#[tokio::test]
async fn above_a_number_all_are_deferred_that_do_not_decline() {
    let tools = [tool("a"), tool("b"), says(builder("c").deferred(false), "ran")];
    let engine = engine().tools(tools).defer(Deferral::new().above(2)).build().unwrap();
    assert_eq!(defined(&engine).await, ["c", SEARCH_TOOLS, CALL_TOOL]);
}

#[tokio::test]
async fn tools_are_deferred_by_toolset_name_server_and_origin() {
    let tools = || {
        [
            says(builder("one").toolset("billing"), "ran"),
            says(builder("two").origin("hub:tools"), "ran"),
            says(builder("mcp__git__log").mcp_server("git").origin("mcp:git"), "ran"),
            tool("three"),
        ]
    };
    let all = ["one", "two", "mcp__git__log", "three"];
    for (deferral, deferred) in [
        (Deferral::new().toolsets(["bill*"]), "one"),
        (Deferral::new().origins(["hub:*"]), "two"),
        (Deferral::new().mcp_servers(["git"]), "mcp__git__log"),
        (Deferral::new().tools(["three"]), "three"),
    ] {
        let engine = engine().tools(tools()).defer(deferral).build().unwrap();
        let mut expected: Vec<_> = all.into_iter().filter(|name| *name != deferred).collect();
        expected.extend([SEARCH_TOOLS, CALL_TOOL]);
        assert_eq!(defined(&engine).await, expected);
    }
}

#[tokio::test]
async fn a_search_lists_each_need_with_schemas_on_request() {
    let engine = desk().build().unwrap();
    let needs = json!({ "needs": ["give the money back", "look up an order"] });
    let result = once(&engine, SEARCH_TOOLS, needs).await;
    assert_eq!(
        serde_json::from_str::<Value>(&result.value).unwrap(),
        json!({ "found": [
            { "need": "give the money back", "tools": [
                { "name": "refund_payment", "description": "Returns the money of a charge" },
            ] },
            { "need": "look up an order", "tools": [
                { "name": "find_order", "description": "Looks up an order by its number." },
            ] },
        ] })
    );
    let needs = json!({ "needs": ["order"], "schemas": true });
    let result = once(&engine, SEARCH_TOOLS, needs).await;
    let lists: Value = serde_json::from_str(&result.value).unwrap();
    assert_eq!(lists["found"][0]["tools"][0]["input_schema"]["type"], "object");
}

#[tokio::test]
async fn a_list_continues_at_an_offset() {
    let order = |number: u32| deferred(&format!("order_{number}"), "Reads an order.");
    let engine = engine().tools((0..12).map(order)).build().unwrap();
    let mut all = Vec::new();
    for (offset, length) in [(0, 5), (5, 5), (10, 2), (45, 0)] {
        let needs = json!({ "needs": ["read an order"], "offset": offset });
        let names = found(&once(&engine, SEARCH_TOOLS, needs).await);
        assert_eq!(names.len(), length, "{offset}");
        all.extend(names);
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 12);
    let beyond = json!({ "needs": ["read an order"], "offset": 46 });
    assert_eq!(once(&engine, SEARCH_TOOLS, beyond).await.code, Some(ErrorCode::InputInvalid));
}

#[tokio::test]
async fn lists_that_exceed_the_budget_stay_json_and_name_what_is_revealed() {
    let text = "Reads an order of a customer by its number. ".repeat(4);
    let large = |number: u32| {
        let schema = json!({
            "type": "object",
            "properties": { "order": { "type": "string", "description": text.repeat(4) } },
        });
        let tool = builder(&format!("order_{number}")).description(text.as_str());
        says(tool.input_schema(schema).deferred(true), "ran")
    };
    for chars in [200, 700, 1_500, 4_000] {
        let limits = Limits { batch_result_chars: chars, ..Limits::default() };
        let engine = engine().tools((0..8).map(large)).limits(limits).build().unwrap();
        let log = Log::of(engine.events());
        let needs = json!({ "needs": ["read an order"], "schemas": true });
        let result = once(&engine, SEARCH_TOOLS, needs).await;
        assert!(result.text.chars().count() <= chars, "{}", result.text);
        let names = found(&result);
        assert_eq!(names.len() < 5, chars < 700, "{chars}: {names:?}");
        let shown: Vec<_> =
            result.message().found_tools().iter().map(ToString::to_string).collect();
        assert_eq!(shown, names);
        let reported = log.events().into_iter().find_map(|event| match event.kind {
            EventKind::ToolsSearched { found, .. } => Some(found),
            _ => None,
        });
        assert_eq!(reported.unwrap()[0].iter().map(ToString::to_string).collect::<Vec<_>>(), names);
    }
}

/// The names that are listed after the stable tools.
fn listed_after(iteration: &Iteration) -> Vec<String> {
    let menu = iteration.menu();
    menu.names().skip(menu.stable().len()).map(ToString::to_string).collect()
}

async fn find(turn: &mut Turn, need: &str) -> ToolResult {
    let calls = vec![call(SEARCH_TOOLS, json!({ "needs": [need] }))];
    turn.iteration().await.unwrap().execute(calls).await.remove(0)
}

fn appending() -> Deferral {
    Deferral::new().reveal(Reveal::Append)
}

#[tokio::test]
async fn found_tools_are_appended_in_order_after_the_same_bytes() {
    let engine = desk().defer(appending()).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let before = Arc::clone(turn.iteration().await.unwrap().menu());
    let names: Vec<_> = before.names().map(ToString::to_string).collect();
    assert_eq!(names, ["visible", SEARCH_TOOLS], "no `call_tool`");
    find(&mut turn, "look up an order by its number").await;
    let iteration = turn.iteration().await.unwrap();
    assert_eq!(listed_after(&iteration), ["find_order"]);
    find(&mut turn, "give the money back").await;
    let mut iteration = turn.iteration().await.unwrap();
    assert_eq!(listed_after(&iteration), ["find_order", "refund_payment"]);
    let begins = before.rendering().trim_end_matches(']');
    assert!(iteration.menu().rendering().starts_with(begins));
    assert_eq!(iteration.menu().deferred_digest(), before.deferred_digest());
    let result = iteration.execute(vec![call("find_order", json!({}))]).await.remove(0);
    assert_eq!(&*result.value, "ran");
    // The same instance while nothing changes.
    let again = turn.iteration().await.unwrap();
    assert!(Arc::ptr_eq(iteration.menu(), again.menu()));
}

#[tokio::test]
async fn with_call_tool_the_definitions_never_change() {
    let engine = desk().build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let before = turn.iteration().await.unwrap().menu().fingerprint();
    find(&mut turn, "give the money back").await;
    let iteration = turn.iteration().await.unwrap();
    assert_eq!(iteration.menu().fingerprint(), before);
    let revealed: Vec<_> = iteration.menu().revealed().iter().map(|tool| tool.name()).collect();
    assert_eq!(revealed, ["refund_payment"]);
    assert_eq!(listed_after(&iteration), Vec::<String>::new());
}

#[tokio::test]
async fn the_least_recently_used_revealed_tool_is_evicted_and_reported() {
    let tools = ["apple", "banana", "cherry"].map(|fruit| {
        deferred(&format!("peel_{fruit}"), &format!("Removes the skin of one {fruit}."))
    });
    let deferral = appending().max_revealed(2);
    let engine = engine().tools(tools).defer(deferral).build().unwrap();
    let log = Log::of(engine.events());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let one = |fruit: &str| json!({ "needs": [format!("{fruit}")] });
    for fruit in ["apple", "banana"] {
        let calls = vec![call(SEARCH_TOOLS, one(fruit))];
        turn.iteration().await.unwrap().execute(calls).await;
    }
    // A use makes the older one the more recent one.
    turn.iteration().await.unwrap().execute(vec![call("peel_apple", json!({}))]).await;
    turn.iteration().await.unwrap().execute(vec![call(SEARCH_TOOLS, one("cherry"))]).await;
    assert_eq!(listed_after(&turn.iteration().await.unwrap()), ["peel_apple", "peel_cherry"]);
    let last = log.events().into_iter().rev().find_map(|event| match event.kind {
        EventKind::ToolsRevealed { tools, evicted, total } => {
            Some((tools[0].to_string(), evicted[0].to_string(), total))
        }
        _ => None,
    });
    assert_eq!(last.unwrap(), ("peel_cherry".to_owned(), "peel_banana".to_owned(), 2));
}

#[tokio::test]
async fn a_revealed_tool_that_a_rule_revokes_is_neither_listed_nor_called() {
    // The rule depends on the iteration: it denies from the third one on.
    let deny =
        Rule::deny("late").tools(["refund_*"]).when(RuleConditions::default().from_iteration(3));
    for deferral in [Deferral::new(), appending()] {
        let engine = desk().policy(Policy::of([deny.clone()])).defer(deferral).build().unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        assert_eq!(found(&find(&mut turn, "give the money back").await), ["refund_payment"]);
        let mut iteration = turn.iteration().await.unwrap();
        assert_eq!(iteration.menu().revealed().len(), 1);
        for call in [call("refund_payment", json!({})), through("refund_payment", &json!({}))] {
            if iteration.menu().get(&call.name).is_some() {
                assert!(iteration.execute(vec![call]).await[0].is_ok());
            }
        }
        let mut iteration = turn.iteration().await.unwrap();
        assert_eq!(iteration.menu().revealed().len(), 0);
        assert!(!iteration.menu().rendering().contains("refund_payment"));
        for call in [call("refund_payment", json!({})), through("refund_payment", &json!({}))] {
            let result = iteration.execute(vec![call]).await.remove(0);
            assert_eq!(result.code, Some(ErrorCode::NotAvailable));
        }
    }
}

#[tokio::test]
async fn a_turn_that_continues_stored_messages_reveals_the_same_tools() {
    let fruits = ["apple", "banana", "cherry", "damson"];
    let tools = || {
        fruits.map(|fruit| {
            deferred(&format!("peel_{fruit}"), &format!("Removes the skin of one {fruit}."))
        })
    };
    for reveal in [Reveal::CallTool, Reveal::Append] {
        let deferral = || Deferral::new().reveal(reveal).max_revealed(3);
        let engine = engine().tools(tools()).defer(deferral()).build().unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut messages = Vec::new();
        let search = |fruit: &str| call(SEARCH_TOOLS, json!({ "needs": [fruit] }));
        let calls = [
            vec![search("apple"), search("banana")],
            vec![through("peel_apple", &json!({}))],
            vec![call("peel_apple", json!({}))],
            vec![search("cherry")],
            vec![search("damson"), call("no_such_tool", json!({}))],
        ];
        for (number, mut calls) in calls.into_iter().enumerate() {
            for (position, call) in calls.iter_mut().enumerate() {
                call.id = format!("call_{number}_{position}").into();
            }
            messages.push(Message::assistant("", calls.clone()));
            let results = turn.iteration().await.unwrap().execute(calls).await;
            messages.extend(results.iter().map(ToolResult::message));
        }
        let live = Arc::clone(turn.iteration().await.unwrap().menu());
        let again = self::engine().tools(tools()).defer(deferral()).build().unwrap();
        let options = TurnOptions::default().revealed(again.revealed_in(&messages));
        let mut turn = again.turn(options).unwrap();
        let iteration = turn.iteration().await.unwrap();
        let names = |menu: &Menu| {
            menu.revealed().iter().map(|tool| tool.name().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(&live), ["peel_apple", "peel_cherry", "peel_damson"]);
        assert_eq!(names(iteration.menu()), names(&live));
        assert_eq!(iteration.menu().rendering(), live.rendering());
    }
}

#[tokio::test]
async fn a_search_can_be_limited_to_a_server_or_a_toolset() {
    let of = |name: &str, server: &str| {
        let tool = builder(&format!("mcp__{server}__{name}")).mcp_server(server);
        says(
            tool.origin(format!("mcp:{server}")).description("Lists issues.").deferred(true),
            "ran",
        )
    };
    let billing = builder("list_bills").toolset("billing").description("Lists issues of bills.");
    let engine = engine()
        .tools([of("issues", "git"), of("issues", "desk"), says(billing.deferred(true), "ran")])
        .build()
        .unwrap();
    for (filter, value, expected) in [
        ("server", "git", &["mcp__git__issues"][..]),
        ("server", "other", &[]),
        ("toolset", "billing", &["list_bills"]),
    ] {
        let arguments = json!({ "needs": ["list issues"], filter: value });
        assert_eq!(found(&once(&engine, SEARCH_TOOLS, arguments).await), expected);
    }
}

#[tokio::test]
async fn searches_are_reported_and_each_tool_is_revealed_once() {
    let engine = desk().build().unwrap();
    let log = Log::of(engine.events());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    for _ in 0..2 {
        let calls = vec![call(SEARCH_TOOLS, json!({ "needs": ["find an order"] }))];
        turn.iteration().await.unwrap().execute(calls).await;
    }
    let events = log.events();
    let searched = events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolsSearched { needs, found, among, .. } => {
            Some((needs.clone(), found[0][0].to_string(), *among))
        }
        _ => None,
    });
    let one = (vec!["find an order".to_owned()], "find_order".to_owned(), 2);
    assert_eq!(searched.collect::<Vec<_>>(), [one.clone(), one]);
    let revealed: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolsRevealed { tools, .. } => Some(tools[0].to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(revealed, ["find_order"]);
}

#[tokio::test]
async fn a_tool_that_an_active_skill_lists_is_not_deferred() {
    let engine = desk().skills(skills([("refunds", &["refund_payment"])])).build().unwrap();
    let options = TurnOptions::default().skill(skill_id("refunds"));
    let mut turn = engine.turn(options).unwrap();
    let names = menu(&turn.iteration().await.unwrap());
    assert!(names.contains(&"refund_payment".to_owned()), "{names:?}");
}

#[tokio::test]
async fn a_withheld_tool_is_neither_found_nor_counted_nor_called() {
    let engine =
        desk().policy(policy([rule_on("no refunds", Effect::Deny, "refund_*")])).build().unwrap();
    let log = Log::of(engine.events());
    assert_eq!(found(&search(&engine, "refund payment money").await), Vec::<String>::new());
    let unknown = once(&engine, CALL_TOOL, json!({ "tool": "no_such", "arguments": {} })).await;
    let withheld =
        once(&engine, CALL_TOOL, json!({ "tool": "refund_payment", "arguments": {} })).await;
    assert_eq!(withheld.code, Some(ErrorCode::NotAvailable));
    assert_eq!(withheld.value.replace("refund_payment", "no_such"), &*unknown.value);
    assert!(
        log.events()
            .iter()
            .any(|event| { matches!(&event.kind, EventKind::ToolsSearched { among: 1, .. }) })
    );
}

#[tokio::test]
async fn a_revealed_tool_that_a_gate_then_withholds_is_refused() {
    let open = Arc::new(AtomicBool::new(true));
    let state = Arc::clone(&open);
    let listed = provider("gated", move |_: &ListContext| {
        let tool = deferred("refund_payment", "Returns the money.");
        let mut catalog = Catalog::new();
        match state.load(Ordering::SeqCst) {
            true => catalog.offer(tool),
            false => catalog.withhold(tool, "gate".into(), "closed"),
        }
        catalog.offer(deferred("other", "Something else."));
        Listing::now(catalog)
    });
    let engine = engine().provider(listed).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let needs = vec![call(SEARCH_TOOLS, json!({ "needs": ["return money"] }))];
    assert_eq!(found(&iteration.execute(needs).await[0]), ["refund_payment"]);
    open.store(false, Ordering::SeqCst);
    let mut iteration = turn.iteration().await.unwrap();
    let results = iteration.execute(vec![through("refund_payment", &json!({}))]).await;
    assert_eq!(results[0].code, Some(ErrorCode::NotAvailable));
    let needs = vec![call(SEARCH_TOOLS, json!({ "needs": ["return money"] }))];
    assert_eq!(found(&iteration.execute(needs).await[0]), Vec::<String>::new());
}

#[tokio::test]
async fn a_rule_for_call_tool_grants_nothing_and_can_only_restrict() {
    let rules = |rules: Vec<Rule>| desk().policy(Policy::of(rules)).build().unwrap();
    let deny = |name: &str| Rule::deny("no").tools([name]);
    let allow = Rule::allow("allow call_tool").tools([CALL_TOOL]);
    let engine = rules(vec![allow, deny("refund_payment")]);
    let arguments = json!({ "tool": "refund_payment", "arguments": {} });
    let result = once(&engine, CALL_TOOL, arguments.clone()).await;
    assert_eq!(result.code, Some(ErrorCode::NotAvailable));

    let engine = rules(vec![deny(CALL_TOOL)]);
    assert_eq!(defined(&engine).await, ["visible", SEARCH_TOOLS]);
    let result = once(&engine, CALL_TOOL, arguments.clone()).await;
    assert_eq!(result.code, Some(ErrorCode::NotAvailable));

    let engine = rules(vec![Rule::ask("ask").tools([CALL_TOOL])]);
    let result = once(&engine, CALL_TOOL, arguments.clone()).await;
    assert_eq!(result.code, Some(ErrorCode::Denied), "no approver");

    let only_orders = ArgumentMatch::at("/tool").unwrap().starts_with("refund");
    let engine = rules(vec![Rule::deny("orders only").tools([CALL_TOOL]).arguments([only_orders])]);
    assert_eq!(once(&engine, CALL_TOOL, arguments).await.code, Some(ErrorCode::Denied));
    let arguments = json!({ "tool": "find_order", "arguments": {} });
    assert!(once(&engine, CALL_TOOL, arguments).await.is_ok());
}

#[tokio::test]
async fn a_call_of_call_tool_that_names_no_target_is_refused() {
    let engine = desk().build().unwrap();
    for (arguments, code) in [
        (json!({}), ErrorCode::InputInvalid),
        (json!({ "tool": 5, "arguments": {} }), ErrorCode::InputInvalid),
        (json!({ "tool": "find_order", "arguments": [1] }), ErrorCode::InputInvalid),
        (json!({ "tool": "find_order", "arguments": {}, "more": 1 }), ErrorCode::InputInvalid),
        (json!({ "tool": CALL_TOOL, "arguments": {} }), ErrorCode::ExecutionFailed),
        (
            json!({ "tool": CALL_TOOL, "arguments": { "tool": "find_order", "arguments": {} } }),
            ErrorCode::ExecutionFailed,
        ),
    ] {
        let result = once(&engine, CALL_TOOL, arguments.clone()).await;
        assert_eq!(result.code, Some(code), "{arguments} {}", result.value);
    }
    // Written as text, as models do.
    let text = json!({ "tool": "find_order", "arguments": "{}" });
    let result = once(&engine, CALL_TOOL, text).await;
    assert!(result.is_ok(), "{}", result.value);
}

#[tokio::test]
async fn other_tools_of_the_reserved_names_are_withheld_while_tools_are_deferred() {
    let engine =
        desk().tool(tool(SEARCH_TOOLS)).tool(deferred(CALL_TOOL, "Theirs.")).build().unwrap();
    let (_turn, iteration) = first(&engine).await;
    assert_eq!(menu(&iteration), ["visible", SEARCH_TOOLS, CALL_TOOL]);
    assert!(iteration.menu().get(CALL_TOOL).unwrap().is_framework());
    let withheld: Vec<_> = iteration.withheld().names().collect();
    assert_eq!(withheld, [SEARCH_TOOLS, CALL_TOOL]);
}

#[tokio::test]
async fn a_sequential_target_runs_alone() {
    let running = Arc::new(AtomicBool::new(false));
    let state = Arc::clone(&running);
    let alone =
        builder("alone").deferred(true).sequential().handler(move |_: Value, _: ToolContext| {
            let state = Arc::clone(&state);
            async move {
                let overlaps = state.swap(true, Ordering::SeqCst);
                tokio::task::yield_now().await;
                state.store(false, Ordering::SeqCst);
                if overlaps { "overlaps" } else { "alone" }
            }
        });
    let engine = engine().tool(alone).build().unwrap();
    let calls = (0..8).map(|_| through("alone", &json!({}))).collect();
    let results = batch(&engine, calls).await;
    assert!(results.iter().all(|result| &*result.value == "alone"));
}

/// Words of random tools and needs.
const WORDS: [&str; 8] = ["order", "refund", "mail", "city", "file", "report", "user", "page"];

fn words() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&WORDS[..]), 1..4).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With any tools, rules and needs, an engine whose rules withhold tools answers as one that never
    /// had them: the same lists, ranks, counts and error texts, in each mode, also after a reveal.
    #[test]
    fn nothing_withheld_is_found_ranked_counted_or_called(
        texts in prop::collection::vec((words(), any::<bool>()), 1..16),
        denied in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..4),
        needs in prop::collection::vec(words(), 1..3),
        append in any::<bool>(),
    ) {
        let reveal = if append { Reveal::Append } else { Reveal::CallTool };
        let name = |number: usize, words: &str| {
            format!("{}_{number}", words.split(' ').next().unwrap())
        };
        let is_denied = |name: &str| denied.iter().any(|word| name.starts_with(&format!("{word}_")));
        let tools = |with_withheld: bool| {
            let made = texts.iter().enumerate().filter_map(|(number, (words, deferred))| {
                let name = name(number, words);
                let builder = builder(&name).description(words.as_str()).deferred(*deferred);
                (with_withheld || !is_denied(&name)).then(|| says(builder, "ran"))
            });
            made.collect::<Vec<_>>()
        };
        let build = |with: bool| {
            let rules = denied.iter().map(|word| Rule::deny(*word).tools([format!("{word}_*")]));
            let engine = engine().tools(tools(with)).defer(Deferral::new().reveal(reveal));
            if with { engine.policy(Policy::of(rules)) } else { engine }.build().unwrap()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (with, without) = runtime.block_on(async {
            let calls = || {
                let search = call(SEARCH_TOOLS, json!({ "needs": needs, "schemas": true }));
                let all = texts.iter().enumerate().map(|(number, (words, _))| name(number, words));
                let names: Vec<_> = all.collect();
                let through = names.iter().map(|name| through(name, &json!({})));
                let direct = names.iter().map(|name| call(name, json!({})));
                // Twice: before a reveal and after it.
                let all: Vec<_> = through.chain(direct).chain([search]).collect();
                [all.clone(), all]
            };
            (answers(&build(true), calls()).await, answers(&build(false), calls()).await)
        });
        prop_assert_eq!(with, without);
    }
}

/// Everything that a model reads of these batches, and what the events count.
async fn answers(engine: &Engine, batches: [Vec<ToolCall>; 2]) -> Vec<String> {
    let log = Log::of(engine.events());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut read = Vec::new();
    for calls in batches {
        let mut iteration = turn.iteration().await.unwrap();
        read.push(iteration.menu().rendering().to_string());
        read.extend(iteration.execute(calls).await.iter().map(|result| result.text.to_string()));
    }
    read.extend(log.events().iter().filter_map(|event| match &event.kind {
        EventKind::ToolsSearched { found, among, .. } => Some(format!("{found:?} {among}")),
        EventKind::ToolsRevealed { tools, evicted, total } => {
            Some(format!("{tools:?} {evicted:?} {total}"))
        }
        _ => None,
    }));
    read
}

//! Deferred tools: found by `search_tools`, called by `call_tool`, and never a way around a decision.

use std::{
    collections::BTreeSet,
    error::Error,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::{
    Approval, ApprovalRequest, ArgumentMatch, BoxFuture, Catalog, Effect, ErrorCode, EventKind,
    Journal, ListContext, Listing, Message, PendingCall, Policy, Rule, Tool, ToolCall, ToolContext,
    ToolResult, call_approver,
};
use toolcrib_engine::{
    CALL_TOOL, Deferral, Engine, EngineBuilder, Iteration, SEARCH_TOOLS, Turn, TurnOptions,
};

use crate::support::{
    Log, batch, builder, call, engine, menu, once, policy, provider, rule_on, says, skill_id,
    skills, tool,
};

/// A deferred tool.
fn deferred(name: &str, description: &str) -> Tool {
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
async fn a_search_lists_each_need_with_schemas_unless_declined() {
    let engine = desk().build().unwrap();
    let needs = json!({ "needs": ["give the money back", "look up an order"], "schemas": false });
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
    let result = search(&engine, "order").await;
    let lists: Value = serde_json::from_str(&result.value).unwrap();
    assert_eq!(lists["found"][0]["tools"][0]["input_schema"]["type"], "object");
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
            EventKind::ToolsRevealed { tools } => Some(tools[0].to_string()),
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

/// Notes what it is asked to record.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, what: &str, call: &PendingCall<'_>) {
        let note = format!("{what} {} {} {}", call.tool.name(), call.args, call.args_digest);
        self.0.lock().unwrap().push(note);
    }
}

impl Journal for Notes {
    fn intent<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        self.add("intent", &call);
        Box::pin(async { Ok(()) })
    }

    fn outcome<'a>(
        &'a self,
        call: PendingCall<'a>,
        code: Option<ErrorCode>,
        _: Option<&'a ToolResult>,
    ) -> BoxFuture<'a, ()> {
        self.add(&format!("outcome {code:?}"), &call);
        Box::pin(async {})
    }
}

/// Everything that a call leaves behind, without times.
#[derive(Debug, PartialEq)]
struct Traces {
    events: Vec<Value>,
    notes: Vec<String>,
    value: String,
    code: Option<ErrorCode>,
}

async fn traces(rules: &[Rule], tools: &[Tool], call: ToolCall) -> Traces {
    let notes = Notes::default();
    let asked = notes.clone();
    let approver = call_approver(move |call: &ApprovalRequest<'_>| {
        asked.add("approve", call);
        async { Approval::Approved }
    });
    let engine = engine()
        .tools(tools.iter().cloned())
        .policy(Policy::of(rules.iter().cloned()))
        .journal(notes.clone())
        .approver(approver)
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let result = iteration.execute(vec![call]).await.remove(0);
    let events = log.events().into_iter().filter_map(|event| {
        let mut event = serde_json::to_value(&event.kind).unwrap();
        if !event["type"].as_str().unwrap().starts_with("tools.") {
            event.as_object_mut().unwrap().remove("duration_ms");
            return Some(event);
        }
        None
    });
    let events = events.collect();
    let notes = notes.0.lock().unwrap().clone();
    Traces { events, notes, value: result.value.to_string(), code: result.code }
}

#[tokio::test]
async fn call_tool_leaves_the_traces_of_a_direct_call() {
    let schema = json!({
        "type": "object",
        "properties": { "order": { "type": "integer" }, "note": { "type": "string" } },
        "required": ["order"],
    });
    let refund = builder("refund").input_schema(schema).max_result_chars(400).untrusted();
    let much = "much ".repeat(200);
    let tools = [deferred("other", "Something else."), says(refund.deferred(true), &much)];
    let on = |rule: Rule| rule.tools(["refund"]);
    let cents = || [ArgumentMatch::at("/order").unwrap().greater_than(1_000)];
    let lists = [
        vec![],
        vec![on(Rule::ask("ask"))],
        vec![on(Rule::deny("no"))],
        vec![on(Rule::halt("halt"))],
        vec![on(Rule::deny("large")).arguments(cents())],
    ];
    for rules in &lists {
        for arguments in [
            json!({ "order": 1042 }),
            json!({ "order": 7.0, "note": null }),
            json!({ "order": "text" }),
            json!({}),
        ] {
            let id = "one-id";
            let direct = ToolCall::new(id, "refund", arguments.clone());
            let target = json!({ "tool": "refund", "arguments": arguments });
            let through = ToolCall::new(id, CALL_TOOL, target.clone());
            let as_text = ToolCall::unparsed(id, CALL_TOOL, target.to_string());
            let expected = traces(rules, &tools, direct).await;
            assert_eq!(traces(rules, &tools, through).await, expected);
            assert_eq!(traces(rules, &tools, as_text).await, expected);
        }
    }
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

    /// With any tools, rules and needs, a search finds only tools that a menu without deferral
    /// would offer, counts these only, and a call of any other is refused as unknown.
    #[test]
    fn nothing_withheld_is_found_counted_or_called(
        texts in prop::collection::vec((words(), any::<bool>()), 1..16),
        denied in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..4),
        need in words(),
    ) {
        let tools = |with_deferral: bool| {
            let made = texts.iter().enumerate().map(|(number, (words, deferred))| {
                let name = format!("{}_{number}", words.split(' ').next().unwrap());
                let builder = builder(&name).description(words.as_str());
                says(builder.deferred(*deferred && with_deferral), "ran")
            });
            made.collect::<Vec<_>>()
        };
        let rules = || denied.iter().map(|word| Rule::deny(*word).tools([format!("{word}_*")]));
        let build = |with: bool| engine().tools(tools(with)).policy(Policy::of(rules())).build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let permitted: BTreeSet<String> = defined(&build(false)).await.into_iter().collect();
            let engine = build(true);
            let log = Log::of(engine.events());
            let (_turn, mut iteration) = first(&engine).await;
            let deferred: BTreeSet<String> =
                iteration.menu().deferred().iter().map(|tool| tool.name().to_string()).collect();
            prop_assert!(deferred.is_subset(&permitted));
            if !deferred.is_empty() {
                let search = call(SEARCH_TOOLS, json!({ "needs": [need] }));
                let result = iteration.execute(vec![search]).await.remove(0);
                for name in found(&result) {
                    prop_assert!(deferred.contains(&name));
                }
                let counted = log.events().iter().find_map(|event| match &event.kind {
                    EventKind::ToolsSearched { among, .. } => Some(*among),
                    _ => None,
                });
                prop_assert_eq!(counted, Some(deferred.len()));
            }
            for tool in tools(true) {
                let result = iteration.execute(vec![through(tool.name(), &json!({}))]).await.remove(0);
                let may = permitted.contains(tool.name().as_str()) && !deferred.is_empty();
                prop_assert_eq!(result.is_ok(), may, "{}", tool.name());
            }
            Ok(())
        })?;
    }
}

//! Composing the menu from the providers' tools: names, order, fingerprints, costs.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use futures_util::FutureExt as _;
use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::{
    CancellationToken, GateDecision, ListContext, Listing, Menu, OnCollision, Policy, Reason, Rule,
    RuleConditions, Tool, ToolName, concat, gated_tools, static_tools,
};
use toolcrib_engine::{Engine, EngineBuilder, Redactor, Skill, Skills, TurnError, TurnOptions};

use crate::support::{
    Log, builder, call, engine, in_time, menu, offered, once, provider, says, skill_id, tool,
};

async fn first_menu(engine: &Engine) -> Arc<Menu> {
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let iteration = turn.iteration().await.unwrap();
    Arc::clone(iteration.menu())
}

fn with_schema(name: &str, schema: Value) -> Tool {
    says(builder(name).input_schema(schema), "")
}

#[tokio::test]
async fn baseline_tools_precede_providers_in_the_given_order() {
    let engine = engine()
        .provider(static_tools([tool("p1")]))
        .tool(tool("s1"))
        .provider(static_tools([tool("p2")]))
        .tool(tool("s2"))
        .build()
        .unwrap();
    assert_eq!(offered(&engine, TurnOptions::default()).await, ["s1", "s2", "p1", "p2"]);
    assert_eq!(&*once(&engine, "p2", json!({})).await.value, "ran");
}

#[tokio::test]
async fn a_composition_is_reused_by_the_next_turn_until_an_input_changes() {
    let listed = Arc::new(Mutex::new(vec![tool("a"), tool("b")]));
    let lists = Arc::clone(&listed);
    let source = provider("changing", move |_| Listing::now(lists.lock().unwrap().to_vec()));
    let available = Arc::new(AtomicBool::new(true));
    let is_available = Arc::clone(&available);
    let ready = builder("ready").available_if(move || is_available.load(Relaxed));
    let for_bob = Rule::deny("not for bob")
        .tools(["b"])
        .when(RuleConditions { principals: vec!["bob".into()], ..RuleConditions::default() });
    let engine = engine()
        .provider(source)
        .tool(says(ready, ""))
        .policy(Policy::of([for_bob]))
        .build()
        .unwrap();
    let menu_of = async |principal: &str| {
        let options = TurnOptions::default().principal(principal);
        let mut turn = engine.turn(options).unwrap();
        Arc::clone(turn.iteration().await.unwrap().menu())
    };
    let names = |menu: &Menu| Vec::from_iter(menu.names().map(ToString::to_string));
    let (ana, bob) = (menu_of("ana").await, menu_of("bob").await);
    assert_eq!((names(&ana), names(&bob)), (names_of("ready a b"), names_of("ready a")));
    assert!(Arc::ptr_eq(&ana, &menu_of("ana").await));
    assert!(Arc::ptr_eq(&bob, &menu_of("bob").await));

    available.store(false, Relaxed);
    assert_eq!(names(&*menu_of("ana").await), names_of("a b"));
    available.store(true, Relaxed);
    assert_eq!(names(&*menu_of("ana").await), names_of("ready a b"));
    listed.lock().unwrap().pop();
    assert_eq!(names(&*menu_of("ana").await), names_of("ready a"));
    assert!(!Arc::ptr_eq(&menu_of("ana").await, &menu_of("bob").await));
}

/// At most 64 situations: the oldest is evicted.
#[tokio::test]
async fn compositions_for_later_turns_are_limited_to_64() {
    let engine = engine().tool(tool("a")).build().unwrap();
    let menu_of = async |number: usize| {
        let options = TurnOptions::default().principal(number.to_string());
        let mut turn = engine.turn(options).unwrap();
        Arc::downgrade(turn.iteration().await.unwrap().menu())
    };
    let (first, second) = (menu_of(0).await, menu_of(1).await);
    for number in (2..64).chain([3]) {
        menu_of(number).await;
    }
    assert!(first.upgrade().is_some());
    menu_of(64).await;
    assert!(first.upgrade().is_none() && second.upgrade().is_some());
}

#[tokio::test]
async fn tools_of_a_turn_end_with_it() {
    let engine = engine().tool(tool("a")).build().unwrap();
    let held = Arc::new(());
    let holds = Arc::clone(&held);
    let own = builder("own").handler(move |_: Value, _| {
        let _holds = &holds;
        async { "ran" }
    });
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    turn.registry().register(own.unwrap()).unwrap();
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["a", "own"]);
    assert_eq!(offered(&engine, TurnOptions::default()).await, ["a"]);
    drop(turn);
    assert_eq!(Arc::strong_count(&held), 1);
}

fn names_of(names: &str) -> Vec<String> {
    names.split(' ').map(str::to_owned).collect()
}

#[tokio::test]
async fn the_same_content_from_other_instances_is_the_same_bytes() {
    let build = || {
        let tools = ["a", "b", "c"].map(|name| {
            with_schema(name, json!({"type": "object", "properties": {"x": {"type": "integer"}}}))
        });
        engine().tools(tools).build().unwrap()
    };
    let (one, two) = (first_menu(&build()).await, first_menu(&build()).await);
    assert!(!one.tools()[0].same(&two.tools()[0]));
    assert_eq!(one.fingerprint(), two.fingerprint());
    assert_eq!(one.rendering(), two.rendering());
    assert_eq!(one.chars(), one.rendering().chars().count());
    let parsed: Value = serde_json::from_str(one.rendering()).unwrap();
    assert_eq!(parsed[2]["name"], "c");
    assert_eq!(parsed.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn the_order_of_properties_changes_the_bytes_and_that_of_schema_keys_does_not() {
    let menu_of = |schema: &str| {
        let schema = serde_json::from_str(schema).unwrap();
        let engine = engine().tool(with_schema("t", schema)).build().unwrap();
        async move { first_menu(&engine).await }
    };
    let one = menu_of(
        r#"{"type":"object","required":["b","a"],
            "properties":{"a":{"type":"string","description":"d"},"b":{"type":"string"}}}"#,
    )
    .await;
    let other = menu_of(
        r#"{"properties":{"a":{"description":"d","type":"string"},"b":{"type":"string"}},
            "required":["a","b"],"type":"object"}"#,
    )
    .await;
    assert_eq!(one.fingerprint(), other.fingerprint());
    assert_eq!(one.rendering(), other.rendering());
    let swapped = menu_of(
        r#"{"type":"object","required":["b","a"],
            "properties":{"b":{"type":"string"},"a":{"type":"string","description":"d"}}}"#,
    )
    .await;
    assert_ne!(one.fingerprint(), swapped.fingerprint());
}

#[tokio::test]
async fn what_a_model_does_not_read_does_not_change_the_fingerprint_and_what_it_reads_does() {
    let menu_of = |tools: Vec<Tool>| async {
        first_menu(&engine().tools(tools).build().unwrap()).await.fingerprint()
    };
    let plain = menu_of(vec![tool("a"), tool("b")]).await;
    let unread = says(builder("a").origin("elsewhere").toolset("x").untrusted(), "");
    assert_eq!(plain, menu_of(vec![unread, tool("b")]).await);
    let described = says(builder("a").description("Another."), "");
    assert_ne!(plain, menu_of(vec![described, tool("b")]).await);
    assert_ne!(plain, menu_of(vec![tool("b"), tool("a")]).await);
    assert_ne!(plain, menu_of(vec![tool("a")]).await);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_menu_has_the_same_bytes_whether_sources_answer_now_or_later(
        later in prop::collection::vec(any::<bool>(), 1..7),
        order in prop::collection::vec(any::<prop::sample::Index>(), 12),
        nested: bool,
    ) {
        let releases: Vec<_> = later.iter().map(|_| CancellationToken::new()).collect();
        let sources: Vec<_> = later.iter().copied().enumerate().map(|(n, later)| {
            let release = releases[n].clone();
            let source = provider("source", move |_| {
                let tools = [tool(&format!("tool_{n}"))];
                if !later {
                    return Listing::now(tools);
                }
                let release = release.clone();
                Listing::later(async move {
                    release.cancelled().await;
                    Ok(tools.into())
                })
            });
            gated_tools("all", source, |_: &Tool, _: &ListContext| true)
        }).collect();
        let engine = match nested {
            true => engine().provider(concat(sources)),
            false => sources.into_iter().fold(engine(), EngineBuilder::provider),
        };
        let engine = engine.build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let menu = runtime.block_on(async {
            let mut turn = engine.turn(TurnOptions::default()).unwrap();
            let releasing = async {
                for index in &order {
                    index.get(&releases).cancel();
                    tokio::task::yield_now().await;
                }
                releases.iter().for_each(CancellationToken::cancel);
            };
            let (iteration, ()) = in_time(async { tokio::join!(turn.iteration(), releasing) }).await;
            Arc::clone(iteration.unwrap().menu())
        });
        let expected: Vec<_> = (0..later.len()).map(|n| tool(&format!("tool_{n}"))).collect();
        let expected = Menu::new(expected).unwrap();
        prop_assert_eq!(menu.rendering(), expected.rendering());
        prop_assert_eq!(menu.fingerprint(), expected.fingerprint());
    }
}

#[tokio::test]
async fn offered_says_whether_the_menu_changed() {
    let engine = engine().tool(tool("a")).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    turn.iteration().await.unwrap();
    turn.iteration().await.unwrap();
    turn.registry().register(tool("b")).unwrap();
    turn.iteration().await.unwrap();
    // Another instance with the same content is not a change.
    turn.registry().overwrite(tool("b"));
    turn.iteration().await.unwrap();
    let changed: Vec<_> =
        log.of_name("tools.offered").iter().map(|event| event["changed"].clone()).collect();
    assert_eq!(changed, [json!(true), json!(false), json!(true), json!(false)]);
}

#[tokio::test]
async fn two_sources_of_one_name_fail_naming_both_unless_the_incoming_tool_says_who_yields() {
    let incoming = |on_collision| {
        let tool =
            says(builder("t").origin("mcp:b").mcp_server("b").on_collision(on_collision), "second");
        let first = says(builder("t").origin("toolcrib.toml:3"), "first");
        engine()
            .tools([first, says(builder("u"), "")])
            .provider(static_tools([tool]))
            .build()
            .unwrap()
    };
    let engine = incoming(OnCollision::Fail);
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let Err(TurnError::Collision(error)) = turn.iteration().await else {
        panic!("no collision");
    };
    let text = error.to_string();
    assert!(text.contains("it comes from toolcrib.toml:3, and again from mcp:b"), "{text}");

    for (on_collision, says, kept, dropped) in [
        (OnCollision::Keep, "first", "toolcrib.toml:3", "mcp:b"),
        (OnCollision::Replace, "second", "mcp:b", "toolcrib.toml:3"),
    ] {
        let engine = incoming(on_collision);
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let log = Log::of(turn.events().run());
        turn.iteration().await.unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        // The place in the order is that of the first.
        assert_eq!(menu(&iteration), ["t", "u"]);
        assert_eq!(&*iteration.execute(vec![call("t", json!({}))]).await[0].value, says);
        let events = log.of_name("tools.collision");
        assert_eq!(events.len(), 2, "one per iteration");
        assert_eq!((&events[0]["kept"], &events[0]["dropped"]), (&json!(kept), &json!(dropped)));
    }
}

#[tokio::test]
async fn duplicates_inside_one_provider_are_no_less_a_collision() {
    let engine = engine().provider(static_tools([tool("t"), tool("t")])).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let outcome = turn.iteration().await;
    assert!(matches!(outcome, Err(TurnError::Collision(_))));
}

#[tokio::test]
async fn a_withheld_tool_collides_with_nothing() {
    let hidden = gated_tools("no", static_tools([tool("t")]), |_: &Tool, _: &ListContext| false);
    let engine = engine().tool(tool("t")).provider(hidden).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    assert_eq!(menu(&iteration), ["t"]);
    assert_eq!(iteration.withheld().len(), 1);
    assert!(iteration.execute(vec![call("t", json!({}))]).await[0].is_ok());
}

/// From the third iteration on, listing an unchanged menu allocates nothing.
#[test]
fn an_unchanged_menu_of_a_thousand_tools_behind_three_gates_costs_no_allocation() {
    let tools: Vec<_> = (0..1_000).map(|n| tool(&format!("tool_{n}"))).collect();
    let listed = tools.iter().take(500).map(|tool| tool.name().clone());
    let skill = Skill::new(skill_id("half"), "Half of them.", "Use half.").tools(listed);
    let never = ToolName::new("tool_7").unwrap();
    let gates = gated_tools(
        "skill",
        gated_tools(
            "even",
            gated_tools("all", static_tools(tools), |_: &Tool, cx: &ListContext| {
                cx.identity().tenant.is_none()
            }),
            move |tool: &Tool, _: &ListContext| *tool.name() != never,
        ),
        |tool: &Tool, cx: &ListContext| {
            if cx.active_skill().is_some() && tool.name().ends_with('9') {
                GateDecision::Withhold(Reason::from("no nines"))
            } else {
                GateDecision::Offer
            }
        },
    );
    let engine = Engine::builder()
        .redactor(Redactor::new(["a-known-secret".to_owned()]))
        .provider(gates)
        .skills(Skills::new(vec![skill]).unwrap())
        .build()
        .unwrap();
    let options = TurnOptions::default().skill(skill_id("half"));
    let mut turn = engine.turn(options).unwrap();
    let mut iterate = |counted: &mut u64| {
        let allocations = allocation_counter::measure(|| {
            let iteration = turn.iteration().now_or_never().expect("no future is waited for");
            assert_eq!(iteration.unwrap().menu().len(), 450);
        });
        *counted = allocations.count_total;
    };
    let mut counted = 0;
    iterate(&mut counted);
    assert!(counted > 0, "the counter counts");
    iterate(&mut counted);
    for _ in 3..10 {
        iterate(&mut counted);
        assert_eq!(counted, 0);
    }
}

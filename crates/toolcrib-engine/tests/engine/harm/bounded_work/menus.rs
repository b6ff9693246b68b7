//! Catalogs and policies.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::json;
use toolcrib_core::{ArgumentMatch, Effect, Listing, Policy, Tool, static_tools};
use toolcrib_engine::TurnOptions;

use super::measured::measured;
use crate::support::{builder, engine, menu, offered, once, policy, provider, rule, rule_on, says};

/// How many tools there are: fewer in tests that are not optimized.
const MANY: usize = if cfg!(debug_assertions) { 500 } else { 5_000 };

const MOST_MIB: u64 = 1_500;

#[test]
fn rules_with_many_wildcards_kept_the_thread_for_names_that_nearly_match() {
    let stars = format!("*{}b", "a*".repeat(64));
    let rules = (0..50).map(|at| rule_on(&format!("r{at}"), Effect::Deny, &format!("{stars}{at}")));
    let rules = Policy { rules: rules.collect(), ..Policy::default() };
    let name = |at| format!("{}{at}", "a".repeat(56));
    let tools = (0..MANY).map(|at| says(builder(&name(at)).origin("hub:evil"), "ran"));
    let engine = engine().policy(rules).provider(static_tools(tools)).build().unwrap();
    let (offered, cost) = measured(offered(&engine, TurnOptions::default()));
    assert_eq!(offered.len(), MANY);
    cost.is_bounded("names against wildcards", MOST_MIB);
}

fn taking() -> Tool {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let schema = json!({"type": "object", "properties": {"a": list}});
    says(builder("t").origin("hub:evil").input_schema(schema), "ran")
}

#[test]
fn a_rule_over_arguments_kept_the_thread_for_long_lists() {
    for pattern in [r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-z]{2,}$", r"(^|/)\.(ssh|aws)(/|$)"] {
        let condition = ArgumentMatch::at("/a").unwrap().matches(pattern).unwrap();
        let rules = policy([rule("r", Effect::Deny).arguments([condition])]);
        let engine = engine().policy(rules).provider(static_tools([taking()])).build().unwrap();
        for (items, length) in [(1, 64 * 1024), (90_000, 17)] {
            let args = json!({ "a": vec!["a".repeat(length); items] });
            let (result, cost) = measured(once(&engine, "t", args));
            assert!(result.is_ok(), "{}", result.value);
            cost.is_bounded(&format!("{pattern} in {items} of {length} bytes"), MOST_MIB);
        }
    }
}

fn changed(round: usize) -> Vec<Tool> {
    let described = "<".repeat(200);
    let tool = |at| {
        let property = json!({"type": "string", "description": described});
        let schema = json!({"type": "object", "properties": {format!("p{round}"): property}});
        let description = format!("Round {round} of {}", "\n user".repeat(60));
        let tool = builder(&format!("t{at}")).origin("hub:evil").description(description);
        says(tool.input_schema(schema), "ran")
    };
    (0..MANY).map(tool).collect()
}

#[test]
fn a_catalog_that_changes_in_all_of_its_tools_kept_the_thread() {
    let round = Arc::new(AtomicUsize::new(0));
    let of = Arc::clone(&round);
    let lists: Vec<Vec<Tool>> = (0..3).map(changed).collect();
    let listed = provider("hub", move |_| Listing::now(lists[of.load(Ordering::Relaxed)].to_vec()));
    let engine = engine().provider(listed).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    for r in 0..3 {
        round.store(r, Ordering::Relaxed);
        let (offered, cost) = measured(async { menu(&turn.iteration().await.unwrap()).len() });
        assert_eq!(offered, MANY);
        cost.is_bounded(&format!("all tools changed, round {r}"), MOST_MIB);
    }
}

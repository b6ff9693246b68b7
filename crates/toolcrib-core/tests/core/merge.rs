//! Merging of registries.

use proptest::prelude::*;
use toolcrib_core::{Lifetime, OnCollision, Tool, ToolRegistry, TurnSignals};

use crate::support::{ending, named, tool, tool_builder};

use OnCollision::{Fail, Keep, Replace};

const ALL: [OnCollision; 3] = [Fail, Replace, Keep];

fn registry<const N: usize>(tools: [Tool; N]) -> ToolRegistry {
    ToolRegistry::try_from(Vec::from(tools)).unwrap()
}

fn x(on_collision: OnCollision, origin: &str) -> Tool {
    ending(tool_builder("x").on_collision(on_collision).origin(origin))
}

struct Context(TurnSignals);

impl AsRef<TurnSignals> for Context {
    fn as_ref(&self) -> &TurnSignals {
        &self.0
    }
}

// Case 19.
#[test]
fn a_merge_of_no_registries_is_empty() {
    assert!(ToolRegistry::merge([]).unwrap().is_empty());
}

// Case 20.
#[test]
fn tools_of_different_names_stand_from_left_to_right_under_every_policy() {
    let (a, b) = (registry([tool("b"), tool("a")]), registry([tool("d"), tool("c")]));
    for policy in ALL {
        let merged = ToolRegistry::merge_with([&a, &b], policy).unwrap();
        assert_eq!(named(&merged.all()), ["b", "a", "d", "c"]);
        assert_eq!(merged.changes(), 0);
    }
}

// Cases 21 to 30, under each policy of the existing tool, which is ignored.
#[test]
fn the_incoming_tool_decides_then_the_merge() {
    // The result by the incoming tool's declaration, under `Fail`, `Replace` and `Keep`.
    let table = [
        (Fail, [None, Some("new"), Some("old")]),
        (Replace, [Some("new"); 3]),
        (Keep, [Some("old"); 3]),
    ];
    for there in ALL {
        for (declared, results) in table {
            for (policy, result) in ALL.into_iter().zip(results) {
                let old = registry([tool("w"), x(there, "old"), tool("y")]);
                let new = registry([tool("z"), x(declared, "new")]);
                let merged = ToolRegistry::merge_with([&old, &new], policy);
                let Some(stays) = result else {
                    let error = merged.unwrap_err();
                    assert_eq!((&*error.existing, &*error.incoming), ("old", "new"));
                    continue;
                };
                let merged = merged.unwrap();
                assert_eq!(merged.get("x").unwrap().origin(), stays);
                assert_eq!(named(&merged.all()), ["w", "x", "y", "z"]);
            }
        }
    }
}

// Case 31.
#[test]
fn inputs_stay_as_they_are_after_an_error_too() {
    let (a, b) = (registry([x(Fail, "a"), tool("y")]), registry([tool("z"), x(Fail, "b")]));
    b.hide("x");
    let before = (a.clone(), b.clone());
    ToolRegistry::merge([&a, &b]).unwrap_err();
    ToolRegistry::merge_with([&a, &b], Replace).unwrap().unregister("z");
    assert!(a.diff(&before.0).is_empty() && b.diff(&before.1).is_empty());
    assert_eq!((a.changes(), b.changes()), (before.0.changes(), before.1.changes()));
}

// Cases 32 and 33.
#[test]
fn ephemeral_tools_stay_ephemeral_and_only_what_is_bound_is_pruned() {
    let main = registry([tool("main")]);
    let forged = registry([ending(tool_builder("forged").ephemeral(Lifetime::Iteration))]);
    let bound = ToolRegistry::merge([&main, &forged]).unwrap();
    let cx = Context(TurnSignals::new());
    bound.bind_context(&cx);
    forged.bind_context(&cx);
    let of_bound = ToolRegistry::merge([&bound, &registry([])]).unwrap();
    cx.0.ack().unwrap();
    assert_eq!(named(&bound.all()), ["main"]);
    assert!(forged.is_empty());
    assert_eq!(named(&of_bound.all()), ["main", "forged"]);
}

// Case 34.
#[test]
fn the_last_replacing_tool_wins() {
    let inputs = [registry([x(Fail, "1")]), registry([x(Keep, "2")]), registry([x(Replace, "3")])];
    assert_eq!(ToolRegistry::merge(&inputs).unwrap().get("x").unwrap().origin(), "3");
}

// Case 35.
#[test]
fn what_is_hidden_in_a_source_is_hidden_in_the_result() {
    let (a, b) = (registry([tool("a")]), registry([tool("b"), tool("c")]));
    a.hide("a");
    b.hide("c");
    let merged = ToolRegistry::merge([&a, &b]).unwrap();
    assert_eq!(named(&merged.visible()), ["b"]);
}

#[test]
fn a_hidden_tool_that_yields_hides_nothing_and_one_that_wins_is_hidden() {
    let hidden = |tool| {
        let registry = registry([tool]);
        registry.hide("x");
        registry
    };
    let visible = registry([x(Fail, "visible")]);
    let merged = |inputs, policy| ToolRegistry::merge_with(inputs, policy).unwrap().is_hidden("x");
    let there = hidden(x(Fail, "hidden"));
    assert!(!merged([&there, &visible], Replace));
    assert!(merged([&there, &visible], Keep));
    assert!(merged([&visible, &there], Replace));
    assert!(!merged([&visible, &there], Keep));
}

#[test]
fn a_tool_does_not_collide_with_itself() {
    let same = x(Fail, "code");
    let (a, b) = (registry([same.clone()]), registry([same.clone(), tool("b")]));
    let merged = ToolRegistry::merge([&a, &b]).unwrap();
    assert_eq!(named(&merged.all()), ["x", "b"]);
    assert!(merged.get("x").unwrap().same(&same));
    // A tool with the same texts is still another tool.
    assert!(ToolRegistry::merge([&a, &registry([x(Fail, "code")])]).is_err());
}

/// Tool, name, and whether it is hidden.
type Entry = (usize, usize, bool);

/// Tools under six names, three per name, one for each policy.
fn pool() -> Vec<Vec<Tool>> {
    let names = ["a", "b", "c", "d", "e", "f"];
    let of = |name: &&str| ALL.map(|policy| ending(tool_builder(name).on_collision(policy))).into();
    names.iter().map(of).collect()
}

fn made_of(pool: &[Vec<Tool>], entries: &[Entry]) -> ToolRegistry {
    let registry = ToolRegistry::new();
    for &(name, which, hidden) in entries {
        let tool = &pool[name][which];
        if registry.register(tool.clone()).is_ok() && hidden {
            registry.hide(tool.name());
        }
    }
    registry
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    prop::collection::vec((0..6_usize, 0..3_usize, any::<bool>()), 0..8)
}

fn policy() -> impl Strategy<Value = OnCollision> {
    prop::sample::select(ALL.to_vec())
}

proptest! {
    /// Without errors the grouping of merges does not matter; the order is that of first
    /// appearance; inputs never change.
    #[test]
    fn merging_is_associative_idempotent_and_changes_no_input(
        inputs in prop::collection::vec(entries(), 3), policy in policy(),
    ) {
        let pool = pool();
        let inputs: Vec<_> = inputs.iter().map(|entries| made_of(&pool, entries)).collect();
        let copies: Vec<_> = inputs.iter().map(|input| (input.clone(), input.changes())).collect();
        let [a, b, c] = &inputs[..] else { panic!("three") };
        let all = ToolRegistry::merge_with(&inputs, policy);
        let left = ToolRegistry::merge_with([a, b], policy)
            .and_then(|ab| ToolRegistry::merge_with([&ab, c], policy));
        let right = ToolRegistry::merge_with([b, c], policy)
            .and_then(|bc| ToolRegistry::merge_with([a, &bc], policy));
        prop_assert_eq!(all.is_ok(), left.is_ok());
        if let (Ok(all), Ok(left)) = (&all, &left) {
            prop_assert!(all.diff(left).is_empty());
            let mut first_seen: Vec<_> = inputs.iter().flat_map(ToolRegistry::all).collect();
            let mut seen = std::collections::HashSet::new();
            first_seen.retain(|tool| seen.insert(tool.name().clone()));
            prop_assert_eq!(named(&all.all()), named(&first_seen));
        }
        if let (Ok(left), Ok(right)) = (&left, &right) {
            prop_assert!(left.diff(right).is_empty());
        }
        for (input, (copy, changes)) in inputs.iter().zip(&copies) {
            prop_assert!(input.diff(copy).is_empty());
            prop_assert_eq!(input.changes(), *changes);
            let twice = ToolRegistry::merge_with([input, input], policy).unwrap();
            prop_assert!(twice.diff(input).is_empty());
        }
    }
}

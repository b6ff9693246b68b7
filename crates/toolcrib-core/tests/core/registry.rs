//! A registry by itself: order, edits, hiding, and pruning on ack.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use serde_json::json;
use toolcrib_core::{
    AlreadyRegisteredError, ArtifactPolicy, Lifetime, OnCollision, Signal, Tool, ToolProvider,
    ToolRegistry, TurnSignals,
};

use crate::support::{cx, ending, named, names, tool, tool_builder};

fn abc() -> ToolRegistry {
    ToolRegistry::try_from(vec![tool("c"), tool("a"), tool("b")]).unwrap()
}

/// `always`, and `brief` for an iteration.
fn with_brief() -> ToolRegistry {
    ToolRegistry::try_from(vec![tool("always"), brief()]).unwrap()
}

fn brief() -> Tool {
    ending(tool_builder("brief").ephemeral(Lifetime::Iteration))
}

/// A turn's context, reduced to the part that a registry needs.
#[derive(Default)]
struct Context(TurnSignals);

impl AsRef<TurnSignals> for Context {
    fn as_ref(&self) -> &TurnSignals {
        &self.0
    }
}

// Case 1.
#[test]
fn a_registry_of_nothing_is_empty() {
    let registry = ToolRegistry::new();
    assert!(registry.all().is_empty() && registry.is_empty());
    assert_eq!((registry.len(), registry.changes()), (0, 0));
}

// Case 2.
#[test]
fn tools_stay_in_the_order_in_which_they_came() {
    assert_eq!(named(&abc().all()), ["c", "a", "b"]);
}

// Cases 3, 4 and 6.
#[test]
fn a_name_that_is_taken_is_refused_with_both_origins_whatever_the_tool_says_of_collisions() {
    let x = |origin: &str| tool_builder("x").origin(origin);
    let error = ToolRegistry::try_from(vec![ending(x("here")), ending(x("there"))]).unwrap_err();
    assert_eq!((&*error.name, &*error.existing, &*error.incoming), ("x", "here", "there"));
    assert_eq!(AlreadyRegisteredError::CODE, "E_TOOL_ALREADY_REGISTERED");
    let registry = ToolRegistry::new();
    let first = ending(x("here"));
    registry.register(first.clone()).unwrap();
    for declared in [OnCollision::Fail, OnCollision::Keep, OnCollision::Replace] {
        assert!(registry.register(ending(x("there").on_collision(declared))).is_err());
        assert!(registry.get("x").unwrap().same(&first));
    }
    assert_eq!((registry.len(), registry.changes()), (1, 1));
}

// Case 5.
#[test]
fn overwrite_keeps_the_place_and_returns_what_was_there() {
    let registry = abc();
    let (old, new) = (registry.get("a").unwrap(), tool("a"));
    assert!(registry.overwrite(new.clone()).unwrap().same(&old));
    assert!(registry.get("a").unwrap().same(&new));
    assert_eq!(named(&registry.all()), ["c", "a", "b"]);
}

#[test]
fn the_tools_of_a_toolset_are_a_registry_of_their_own_in_the_same_order() {
    let of = |name: &str, toolset: &str| ending(tool_builder(name).toolset(toolset));
    let tools = vec![of("c", "file"), of("a", "web"), tool("x"), of("b", "file")];
    let registry = ToolRegistry::try_from(tools).unwrap();
    let files = registry.for_toolset("file");
    assert_eq!(named(&files.all()), ["c", "b"]);
    files.unregister("c");
    assert!(registry.has("c"));
    assert!(registry.for_toolset("File").is_empty());
}

#[test]
fn the_same_tool_twice_is_a_name_that_is_taken() {
    let refund = tool("refund");
    assert!(ToolRegistry::try_from(vec![refund.clone(), refund]).is_err());
}

// Case 7.
#[test]
fn unregister_takes_one_out_and_leaves_the_order() {
    let registry = abc();
    assert_eq!(*registry.unregister("c").unwrap().name(), "c");
    assert_eq!(named(&registry.all()), ["a", "b"]);
    assert!(registry.unregister("c").is_none());
    registry.register(tool("c")).unwrap();
    assert_eq!(named(&registry.all()), ["a", "b", "c"]);
}

#[test]
fn get_and_has_know_exact_names_only() {
    let registry = abc();
    assert!(registry.has("a") && registry.get("a").is_some());
    for other in ["A", "a ", "", "d"] {
        assert!(!registry.has(other) && registry.get(other).is_none(), "{other:?}");
    }
}

// Case 8.
#[test]
fn all_returns_a_fresh_list() {
    let registry = abc();
    let mut all = registry.all();
    all.clear();
    assert_eq!(named(&registry.all()), ["c", "a", "b"]);
}

// Case 9.
#[test]
fn a_hidden_tool_is_there_and_is_not_offered() {
    let registry = Arc::new(abc());
    assert!(registry.hide("a"));
    assert!(registry.get("a").is_some() && registry.has("a") && registry.is_hidden("a"));
    assert_eq!(named(&registry.all()), ["c", "a", "b"]);
    assert_eq!(named(&registry.visible()), ["c", "b"]);
    assert_eq!(named(&registry.hidden()), ["a"]);
    let listing = registry.list(&cx());
    let toolcrib_core::Listing::Now(Ok(catalog)) = listing else { panic!("{listing:?}") };
    assert_eq!(names(&catalog), ["c", "b"]);
    let withheld_by_provider = &catalog.withheld_by_provider()[0];
    assert_eq!(withheld_by_provider.tool.name().as_str(), "a");
    assert_eq!(
        (&*withheld_by_provider.gate, &*withheld_by_provider.reason.to_string()),
        ("registry", "hidden in the registry")
    );
}

// Case 10.
#[test]
fn a_tool_that_comes_back_is_visible() {
    let registry = abc();
    registry.hide("a");
    registry.unregister("a");
    registry.register(tool("a")).unwrap();
    assert_eq!(named(&registry.visible()), ["c", "b", "a"]);
}

// Case 11.
#[test]
fn which_tools_are_hidden_can_be_said_all_at_once() {
    let registry = abc();
    registry.hide("a");
    registry.set_hidden(["b"]);
    assert_eq!(named(&registry.visible()), ["c", "a"]);
    registry.unhide_all();
    assert_eq!(named(&registry.visible()), ["c", "a", "b"]);
    registry.hide("c");
    assert!(registry.unhide("c"));
    assert!(registry.hidden().is_empty());
}

#[test]
fn hiding_a_name_that_is_not_registered_is_not_remembered() {
    let registry = abc();
    assert!(!registry.hide("d"));
    registry.set_hidden(["d", "c"]);
    registry.register(tool("d")).unwrap();
    assert_eq!(named(&registry.visible()), ["a", "b", "d"]);
}

#[test]
fn a_tool_that_replaces_a_hidden_one_is_hidden() {
    let registry = abc();
    registry.hide("a");
    registry.overwrite(tool("a"));
    assert!(registry.is_hidden("a"));
    assert_eq!(named(&registry.visible()), ["c", "b"]);
}

// Case 12.
#[test]
fn pruning_takes_out_what_lives_for_an_iteration_and_nothing_else() {
    let registry = with_brief();
    registry.register(ending(tool_builder("turn").ephemeral(Lifetime::Turn))).unwrap();
    assert_eq!(named(&registry.prune_ephemeral()), ["brief"]);
    let changes = registry.changes();
    assert!(registry.prune_ephemeral().is_empty());
    assert_eq!(named(&registry.all()), ["always", "turn"]);
    assert_eq!(registry.changes(), changes);
    assert!(registry.has_ephemeral());
}

// Case 13.
#[test]
fn a_hidden_ephemeral_tool_that_comes_back_is_visible() {
    let registry = with_brief();
    registry.hide("brief");
    registry.prune_ephemeral();
    registry.register(brief()).unwrap();
    assert_eq!(named(&registry.visible()), ["always", "brief"]);
}

// Case 14.
#[test]
fn a_bound_registry_is_pruned_when_ack_returns_though_nobody_keeps_the_handle() {
    let (registry, cx) = (with_brief(), Context::default());
    registry.bind_context(&cx);
    assert!(registry.has("brief"));
    cx.0.ack().unwrap();
    assert_eq!(named(&registry.all()), ["always"]);
}

// Case 15.
#[test]
fn a_nack_prunes_no_tools() {
    let (registry, cx) = (with_brief(), Context::default());
    registry.bind_context(&cx);
    cx.0.nack("the model is down").unwrap();
    assert_eq!(named(&registry.all()), ["always", "brief"]);
    registry.bind_context(&cx);
    assert!(registry.has("brief"));
    let Some(Signal::Nack(error)) = cx.0.signal() else { panic!("{cx:?}", cx = cx.0) };
    assert_eq!(error.to_string(), "the model is down");
}

// Case 16.
#[test]
fn unsubscribed_before_the_ack_nothing_is_pruned() {
    let (registry, cx) = (with_brief(), Context::default());
    let bound = registry.bind_context(&cx);
    bound.unsubscribe();
    bound.unsubscribe();
    cx.0.ack().unwrap();
    assert!(registry.has("brief"));
}

// Cases 17 and 18.
#[test]
fn callbacks_of_an_ack_run_in_order_even_after_a_panic() {
    let (signals, said) = (TurnSignals::new(), Arc::new(Mutex::new(Vec::new())));
    for n in 1..=3 {
        let said = Arc::clone(&said);
        signals.on_ack(move || {
            said.lock().unwrap().push(n);
            assert_ne!(n, 1, "bug");
        });
    }
    signals.ack().unwrap();
    assert_eq!(*said.lock().unwrap_or_else(std::sync::PoisonError::into_inner), [1, 2, 3]);
}

// Case 68.
#[test]
fn a_second_signal_is_an_error_and_the_first_stands() {
    let signals = TurnSignals::new();
    signals.ack().unwrap();
    assert_eq!(
        signals.ack().unwrap_err().to_string(),
        "this turn was already acked; signal once and then return"
    );
    assert_eq!(signals.nack("late").unwrap_err().first, "acked");
    assert!(matches!(signals.signal(), Some(Signal::Ack)));
    let signals = TurnSignals::new();
    signals.nack("no").unwrap();
    assert_eq!(signals.ack().unwrap_err().first, "nacked");
    assert!(matches!(signals.signal(), Some(Signal::Nack(_))));
}

#[test]
fn bound_twice_it_is_pruned_once_and_each_binding_is_taken_back_by_itself() {
    let (registry, cx) = (with_brief(), Context::default());
    registry.bind_context(&cx).unsubscribe();
    registry.bind_context(&cx);
    registry.bind_context(&cx);
    let before = registry.changes();
    cx.0.ack().unwrap();
    assert_eq!(named(&registry.all()), ["always"]);
    assert_eq!(registry.changes(), before + 1);
}

#[test]
fn bound_after_the_ack_it_is_pruned_at_once() {
    let (registry, cx) = (with_brief(), Context::default());
    cx.0.ack().unwrap();
    assert!(registry.has("brief"));
    registry.bind_context(&cx);
    assert!(!registry.has("brief"));
}

#[test]
fn what_waits_for_an_ack_may_look_at_the_signal_and_bind_more() {
    let (signals, late) = (Arc::new(TurnSignals::new()), Arc::new(AtomicBool::new(false)));
    let (inner, seen) = (Arc::clone(&signals), Arc::clone(&late));
    signals.on_ack(move || {
        assert!(inner.ack().is_err());
        inner.on_ack(move || seen.store(true, Ordering::Relaxed));
    });
    signals.ack().unwrap();
    assert!(late.load(Ordering::Relaxed));
}

#[test]
fn a_context_keeps_no_registry_and_a_copy_is_not_bound() {
    let (registry, cx) = (with_brief(), Context::default());
    registry.bind_context(&cx);
    let copy = registry.clone();
    drop(registry);
    cx.0.ack().unwrap();
    assert!(copy.has("brief"));
}

#[test]
fn copies_are_edited_each_by_itself() {
    let baseline = abc();
    let (one, two) = (baseline.clone(), baseline.clone());
    one.unregister("c");
    one.register(tool("d")).unwrap();
    two.overwrite(tool("a"));
    two.hide("b");
    assert_eq!(named(&one.all()), ["a", "b", "d"]);
    assert_eq!(named(&two.visible()), ["c", "a"]);
    assert_eq!(named(&baseline.visible()), ["c", "a", "b"]);
    assert!(!two.get("a").unwrap().same(&baseline.get("a").unwrap()));
}

#[test]
fn a_difference_lists_added_removed_changed_and_moved_tools() {
    let before = abc();
    assert!(before.clone().diff(&before).is_empty());
    let now = before.clone();
    now.unregister("c");
    now.register(tool("d")).unwrap();
    now.overwrite(tool("a"));
    now.hide("b");
    let diff = now.diff(&before);
    assert_eq!(diff.added, ["d"]);
    assert_eq!(diff.removed, ["c"]);
    assert_eq!(diff.replaced, ["a"]);
    assert_eq!(diff.hidden, ["b"]);
    assert!(diff.unhidden.is_empty() && !diff.reordered);
    assert_eq!(before.diff(&now).unhidden, ["b"]);
    let moved = before.clone();
    let c = moved.unregister("c").unwrap();
    moved.register(c).unwrap();
    let diff = moved.diff(&before);
    assert!(diff.reordered && diff.added.is_empty() && diff.replaced.is_empty());
    assert_eq!(moved.changes(), before.changes() + 2);
}

/// A copy that no longer shares its base is edited like the base.
#[test]
fn a_copy_outlives_what_it_is_a_copy_of() {
    let baseline = abc();
    let copy = baseline.clone();
    copy.hide("b");
    drop(baseline);
    copy.unregister("c");
    copy.register(tool("d")).unwrap();
    copy.unregister("a");
    assert_eq!(named(&copy.all()), ["b", "d"]);
    assert_eq!(named(&copy.hidden()), ["b"]);
}

/// More edits of a copy than are stored separately, and more tools removed at once.
#[test]
fn many_edits_of_a_copy_are_as_good_as_few() {
    let brief = |n: usize| ending(tool_builder(&format!("t{n}")).ephemeral(Lifetime::Iteration));
    let made = |n: usize| if n.is_multiple_of(2) { brief(n) } else { tool(&format!("t{n}")) };
    let baseline = ToolRegistry::try_from((0..400).map(made).collect::<Vec<_>>()).unwrap();
    let before = baseline.all();
    let overwritten = baseline.clone();
    let others: Vec<_> = (0..400).map(made).collect();
    for other in &others {
        overwritten.overwrite(other.clone());
    }
    assert!(overwritten.all().iter().zip(&others).all(|(there, other)| there.same(other)));
    for copy in [baseline.clone(), overwritten] {
        let changes = copy.changes();
        let gone = copy.prune_ephemeral();
        assert_eq!((gone.len(), copy.len(), copy.changes()), (200, 200, changes + 1));
        assert_eq!(named(&gone)[..2], ["t0", "t2"]);
        assert_eq!(named(&copy.all())[..2], ["t1", "t3"]);
        assert!(!copy.has_ephemeral() && copy.get("t398").is_none());
        copy.register(brief(0)).unwrap();
        assert!(copy.has_ephemeral());
    }
    assert!(baseline.all().iter().zip(&before).all(|(there, before)| there.same(before)));
    let kept = baseline.clone();
    kept.retain(|tool| tool.name().ends_with('1'));
    assert_eq!((kept.len(), kept.is_empty(), kept.is_hidden("t1")), (40, false, false));
    assert_eq!(named(&kept.all())[..2], ["t1", "t11"]);
    kept.retain(|_| false);
    assert!(kept.is_empty());
}

// Cases 36 and 37.
#[test]
fn a_tool_that_declares_nothing_has_the_defaults_and_what_it_notes_comes_back() {
    let plain = tool("plain");
    assert!(plain.meta().is_empty() && plain.ephemeral().is_none() && !plain.untrusted());
    assert_eq!(plain.on_collision(), OnCollision::Fail);
    let noted = ending(tool_builder("noted").meta("scope", "billing").meta("level", 2));
    assert_eq!(json!(noted.meta()), json!({ "scope": "billing", "level": 2 }));
    assert_eq!(noted.rendering(), ending(tool_builder("noted")).rendering());
    for builder in [
        Tool::builder("").description("x"),
        Tool::builder("no_description"),
        tool_builder("x").input_schema(json!({ "type": "string" })),
    ] {
        assert!(builder.handler(|_: serde_json::Value, _| async { "" }).is_err());
    }
}

// Case 43.
#[test]
fn a_tool_that_never_keeps_a_result_names_no_kind_of_it() {
    let never = tool_builder("looks").artifact_policy(ArtifactPolicy::Never);
    let error = never.artifact_kind("json").handler(|_: serde_json::Value, _| async { "" });
    assert_eq!(
        error.unwrap_err().to_string(),
        "tool `looks` declares an artifact kind, but the artifact policy `Never`; leave \
         out `artifact_kind`, or `ArtifactPolicy::Never`"
    );
    let always = tool_builder("t").artifact_policy(ArtifactPolicy::Always).artifact_kind("json");
    assert_eq!(ending(always).artifact_kind().map(|kind| &**kind), Some("json"));
}

/// A copy for a turn and its first edit cost the same regardless of the number of tools.
#[test]
fn a_copy_of_many_tools_and_its_first_edit_allocate_next_to_nothing() {
    let mut many: Vec<_> = (0..9_999).map(|n| tool(&format!("tool_{n}"))).collect();
    many.push(brief());
    let baseline = ToolRegistry::try_from(many).unwrap();
    let one_more = tool("one_more");
    let counted = |edit: &dyn Fn(&ToolRegistry)| {
        allocation_counter::measure(|| {
            let turn = baseline.clone();
            edit(&turn);
        })
    };
    let edits: [&dyn Fn(&ToolRegistry); 5] = [
        &|turn| turn.register(one_more.clone()).unwrap(),
        &|turn| drop(turn.unregister("tool_5000")),
        &|turn| assert!(turn.hide("tool_5000")),
        &|turn| drop(turn.overwrite(turn.get("tool_5000").unwrap())),
        &|turn| assert!(turn.diff(&baseline).is_empty()),
    ];
    for edit in edits {
        let counted = counted(edit);
        assert!(counted.count_total < 5 && counted.bytes_total < 4096, "{counted:?}");
    }
    let more: [&dyn Fn(&ToolRegistry); 2] =
        [&|turn| assert_eq!(turn.prune_ephemeral().len(), 1), &|turn| {
            assert!(turn.hide("tool_5000") && turn.hide("tool_1") && turn.unhide("tool_1"));
        }];
    for edits in more {
        let counted = counted(edits);
        assert!(counted.count_total < 10 && counted.bytes_total < 4096, "{counted:?}");
    }
    assert_eq!((baseline.len(), baseline.hidden().len()), (10_000, 0));
}

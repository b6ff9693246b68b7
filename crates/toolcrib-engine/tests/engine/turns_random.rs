//! Random edits of a turn's tools, and random ends: tools with the lifetime of an iteration are
//! offered in one and then removed, and no other tool is lost.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use toolcrib_core::{Lifetime, OnCollision, Tool, ToolRegistry};
use toolcrib_engine::{IterationContext, TurnOptions, TurnRunner};

use crate::support::{builder, engine, menu, says};

const ITERATIONS: u32 = 4;

/// An edit of a registry. Names are numbers.
#[derive(Debug, Clone)]
enum Edit {
    Register(usize, Option<Lifetime>),
    Overwrite(usize, Option<Lifetime>),
    Unregister(usize),
    /// Puts what a merge of it and some forged tools would offer into it.
    Merge(Vec<usize>),
    Prune,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Nothing,
    Ack,
    Nack,
    Error,
    Panic,
    Abort,
}

fn lifetime() -> impl Strategy<Value = Option<Lifetime>> {
    prop::sample::select(vec![None, Some(Lifetime::Iteration), Some(Lifetime::Turn)])
}

fn edit() -> impl Strategy<Value = Edit> {
    let name = || 0..8_usize;
    prop_oneof![
        4 => (name(), lifetime()).prop_map(|(name, lifetime)| Edit::Register(name, lifetime)),
        2 => (name(), lifetime()).prop_map(|(name, lifetime)| Edit::Overwrite(name, lifetime)),
        1 => name().prop_map(Edit::Unregister),
        1 => prop::collection::vec(name(), 0..4).prop_map(Edit::Merge),
        1 => Just(Edit::Prune),
    ]
}

fn end() -> impl Strategy<Value = End> {
    use End::{Abort, Ack, Error, Nack, Nothing, Panic};
    prop::sample::select(vec![Nothing, Nothing, Nothing, Ack, Nack, Error, Panic, Abort])
}

fn made(name: usize, lifetime: Option<Lifetime>) -> Tool {
    let builder = builder(&format!("tool_{name}"));
    says(lifetime.into_iter().fold(builder, toolcrib_core::ToolBuilder::ephemeral), "ran")
}

fn is_brief(tool: &Tool) -> bool {
    tool.ephemeral() == Some(Lifetime::Iteration)
}

/// Applies it, and records the remaining tools: those without the lifetime of an iteration, in any
/// order.
fn apply(registry: &ToolRegistry, stays: &mut Vec<Tool>, edit: &Edit) {
    let mut put = |tool: Tool| {
        stays.retain(|one| one.name() != tool.name());
        if !is_brief(&tool) {
            stays.push(tool);
        }
    };
    match edit {
        Edit::Register(name, lifetime) => {
            let tool = made(*name, *lifetime);
            if registry.register(tool.clone()).is_ok() {
                put(tool);
            }
        }
        Edit::Overwrite(name, lifetime) => {
            let tool = made(*name, *lifetime);
            registry.overwrite(tool.clone());
            put(tool);
        }
        Edit::Unregister(name) => {
            registry.unregister(&format!("tool_{name}"));
            stays.retain(|tool| tool.name().as_str() != format!("tool_{name}"));
        }
        Edit::Merge(names) => {
            let forged = ToolRegistry::new();
            for name in names {
                forged.overwrite(made(*name, Some(Lifetime::Iteration)));
            }
            let merged = ToolRegistry::merge_with([registry, &forged], OnCollision::Keep).unwrap();
            for tool in merged.all() {
                registry.overwrite(tool);
            }
        }
        Edit::Prune => assert!(registry.prune_ephemeral().iter().all(is_brief)),
    }
}

/// The observations of a turn.
#[derive(Default)]
struct Seen {
    stays: Vec<Tool>,
    /// The tools offered for one iteration.
    offered: Vec<Tool>,
}

fn act(cx: &IterationContext, edits: &[Edit], end: End, bind: bool, seen: &Mutex<Seen>) {
    let mut seen = seen.lock().unwrap();
    for tool in cx.menu().tools() {
        assert!(!seen.offered.iter().any(|before| before.same(tool)), "{tool:?} came back");
    }
    let brief: Vec<_> = cx.menu().tools().iter().filter(|tool| is_brief(tool)).cloned().collect();
    seen.offered.extend(brief);
    for tool in &seen.stays {
        assert!(
            cx.menu().get(tool.name()).is_some_and(|there| there.same(tool)),
            "{tool:?} is lost"
        );
    }
    if bind {
        cx.registry().bind_context(cx);
    }
    for edit in edits {
        apply(cx.registry(), &mut seen.stays, edit);
    }
    match end {
        End::Ack => cx.ack().unwrap(),
        End::Nack => cx.nack("no").unwrap(),
        End::Abort => cx.abort(),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_ephemeral_tool_outlives_its_scope_and_no_other_is_lost(
        script in prop::collection::vec((prop::collection::vec(edit(), 0..6), end()), ITERATIONS as usize),
        baseline in prop::collection::hash_map(0..8_usize, lifetime(), 0..5),
        bind in any::<bool>(),
    ) {
        let baseline: Vec<_> = baseline.into_iter().map(|(name, lifetime)| made(name, lifetime)).collect();
        let engine = engine().tools(baseline.clone()).build().unwrap();
        let runner = TurnRunner::new(engine.clone()).max_iterations(ITERATIONS);
        let stays: Vec<_> = baseline.iter().filter(|tool| !is_brief(tool)).cloned().collect();
        let seen = Arc::new(Mutex::new(Seen { stays, ..Seen::default() }));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let outcome = runtime.block_on(async {
            let executor = |cx: IterationContext| {
                let (edits, end) = script[cx.number() as usize - 1].clone();
                let seen = Arc::clone(&seen);
                async move {
                    act(&cx, &edits, end, bind, &seen);
                    assert!(end != End::Panic, "as it was told");
                    if end == End::Error { Err("as it was told".into()) } else { Ok(()) }
                }
            };
            runner.run(TurnOptions::default(), executor).await.unwrap()
        });
        let ended = script.iter().map(|(_, end)| *end).find(|end| *end != End::Nothing);
        let as_told = match ended {
            None | Some(End::Nothing) => "max_iterations",
            Some(End::Ack) => "acked",
            Some(End::Abort) => "cancelled",
            Some(End::Nack | End::Error | End::Panic) => "nacked",
        };
        prop_assert_eq!(outcome.end.as_str(), as_told);

        let seen = seen.lock().unwrap();
        let left = outcome.registry.all();
        for tool in &seen.stays {
            prop_assert!(left.iter().any(|there| there.same(tool)), "{:?} is lost", tool);
        }
        for tool in left.iter().filter(|tool| is_brief(tool)) {
            let was_offered = seen.offered.iter().any(|one| one.same(tool));
            prop_assert!(!was_offered || as_told == "nacked", "{:?} outlived its iteration", tool);
            prop_assert!(!(bind && as_told == "acked"), "{:?} outlived the ack", tool);
        }
        // Nothing of it is seen in the next turn.
        let offered = runtime.block_on(async {
            menu(&engine.turn(TurnOptions::default()).unwrap().iteration().await.unwrap())
        });
        let names: Vec<_> = baseline.iter().map(|tool| tool.name().to_string()).collect();
        prop_assert_eq!(offered, names);
    }
}

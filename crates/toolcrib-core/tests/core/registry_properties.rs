//! Any edits of any copies have the same result as in a plain list.

use std::collections::HashSet;

use proptest::prelude::*;
use toolcrib_core::{Lifetime, Tool, ToolRegistry};

use crate::support::{ending, tool_builder};

/// More than the number of edits stored separately.
const NAMES: usize = 90;

#[derive(Debug, Clone)]
enum Edit {
    Register(usize),
    Overwrite(usize),
    Unregister(usize),
    Hide(usize),
    Unhide(usize),
    SetHidden(HashSet<usize>),
    Prune,
    /// Continues with a copy; the original must stay unchanged.
    Copy,
    /// Edits every tool of the copy.
    OverwriteAll,
}

fn edit() -> impl Strategy<Value = Edit> {
    let name = || 0..NAMES;
    prop_oneof![
        8 => name().prop_map(Edit::Register),
        3 => name().prop_map(Edit::Overwrite),
        4 => name().prop_map(Edit::Unregister),
        2 => name().prop_map(Edit::Hide),
        2 => name().prop_map(Edit::Unhide),
        1 => prop::collection::hash_set(name(), 0..20).prop_map(Edit::SetHidden),
        1 => Just(Edit::Prune),
        1 => Just(Edit::Copy),
        1 => Just(Edit::OverwriteAll),
    ]
}

/// The same as a list, with each tool's number.
#[derive(Debug, Clone, Default)]
struct Model(Vec<(usize, Tool, bool)>);

impl Model {
    fn at(&mut self, number: usize) -> Option<&mut (usize, Tool, bool)> {
        self.0.iter_mut().find(|(there, ..)| *there == number)
    }
}

/// Every third has the lifetime of an iteration, every fifth of a turn.
fn fresh(number: usize) -> Tool {
    let builder = tool_builder(&format!("tool_{number}"));
    ending(match (number % 3, number % 5) {
        (0, _) => builder.ephemeral(Lifetime::Iteration),
        (_, 0) => builder.ephemeral(Lifetime::Turn),
        _ => builder,
    })
}

fn apply(registry: &ToolRegistry, model: &mut Model, edit: &Edit) {
    let name = |number: &usize| format!("tool_{number}");
    match edit {
        Edit::Register(number) => {
            let tool = fresh(*number);
            assert_eq!(registry.register(tool.clone()).is_err(), model.at(*number).is_some());
            if model.at(*number).is_none() {
                model.0.push((*number, tool, false));
            }
        }
        Edit::Overwrite(number) => {
            let tool = fresh(*number);
            let replaced = registry.overwrite(tool.clone());
            match model.at(*number) {
                Some(slot) => {
                    assert!(std::mem::replace(&mut slot.1, tool).same(&replaced.unwrap()));
                }
                None => {
                    assert!(replaced.is_none());
                    model.0.push((*number, tool, false));
                }
            }
        }
        Edit::Unregister(number) => {
            let taken = registry.unregister(&name(number));
            assert_eq!(taken.is_some(), model.at(*number).is_some());
            model.0.retain(|(there, ..)| there != number);
        }
        Edit::Hide(number) | Edit::Unhide(number) => {
            let hidden = matches!(edit, Edit::Hide(_));
            let name = name(number);
            let there = if hidden { registry.hide(&name) } else { registry.unhide(&name) };
            assert_eq!(there, model.at(*number).is_some());
            if let Some(slot) = model.at(*number) {
                slot.2 = hidden;
            }
        }
        Edit::SetHidden(numbers) => {
            registry.set_hidden(numbers.iter().map(name));
            for slot in &mut model.0 {
                slot.2 = numbers.contains(&slot.0);
            }
        }
        Edit::Prune => {
            let brief = |tool: &Tool| tool.ephemeral() == Some(Lifetime::Iteration);
            assert!(registry.prune_ephemeral().iter().all(brief));
            model.0.retain(|(_, tool, _)| !brief(tool));
        }
        Edit::OverwriteAll => {
            for (number, tool, _) in &mut model.0 {
                *tool = fresh(*number);
                registry.overwrite(tool.clone());
            }
        }
        Edit::Copy => {}
    }
}

fn assert_same(registry: &ToolRegistry, model: &Model) {
    let all = registry.all();
    assert_eq!((all.len(), registry.len()), (model.0.len(), model.0.len()));
    assert_eq!(registry.has_ephemeral(), all.iter().any(|tool| tool.ephemeral().is_some()));
    for (there, (number, tool, hidden)) in all.iter().zip(&model.0) {
        let name = format!("tool_{number}");
        assert!(there.same(tool) && registry.get(&name).unwrap().same(tool));
        assert_eq!(registry.is_hidden(&name), *hidden);
    }
    let shown = |wanted: bool| model.0.iter().filter(move |slot| slot.2 == wanted).count();
    assert_eq!((registry.visible().len(), registry.hidden().len()), (shown(false), shown(true)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn edits_of_a_registry_and_its_copies_match_the_model(
        begins_with in 0..=NAMES,
        edits in prop::collection::vec(edit(), 0..250),
    ) {
        let mut model = Model((0..begins_with).map(|number| (number, fresh(number), false)).collect());
        let tools: Vec<_> = model.0.iter().map(|(_, tool, _)| tool.clone()).collect();
        let registry = ToolRegistry::try_from(tools).unwrap();
        let mut left = Vec::new();
        for edit in &edits {
            if matches!(edit, Edit::Copy) {
                left.push((registry.clone(), model.clone()));
            }
            // A registry that shares its tools with a copy takes another edit path than one that
            // does not.
            let shared = left.len() % 2 == 0;
            let (before, changes) = (shared.then(|| registry.clone()), registry.changes());
            apply(&registry, &mut model, edit);
            if let Some(before) = before {
                prop_assert_eq!(registry.diff(&before).is_empty(), registry.changes() == changes);
            }
            assert_same(&registry, &model);
        }
        for (registry, model) in &left {
            assert_same(registry, model);
        }
    }
}

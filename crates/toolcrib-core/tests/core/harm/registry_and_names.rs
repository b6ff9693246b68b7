//! Comparisons of registries.

use std::{sync::mpsc, thread, time::Duration};

use toolcrib_core::ToolRegistry;

use crate::support::tool;

/// Runs a function on a separate thread, and fails if it hangs.
fn ends(what: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        what();
        let _ = done.send(());
    });
    is_done.recv_timeout(Duration::from_secs(300)).expect("it hangs");
}

#[test]
fn a_registry_that_was_compared_with_itself_never_answered() {
    ends(|| {
        let registry = ToolRegistry::try_from(vec![tool("a")]).unwrap();
        assert!(registry.diff(&registry).is_empty());
        assert_eq!(ToolRegistry::merge([&registry, &registry]).unwrap().len(), 1);
    });
}

#[test]
fn two_threads_that_compared_two_registries_crosswise_waited_for_each_other() {
    let a = ToolRegistry::try_from(vec![tool("a")]).unwrap();
    let b = ToolRegistry::try_from(vec![tool("b")]).unwrap();
    ends(move || {
        let crossed = |now: &ToolRegistry, before: &ToolRegistry| {
            for _ in 0..100_000 {
                assert_eq!(now.diff(before).added.len(), 1);
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| crossed(&a, &b));
            scope.spawn(|| crossed(&b, &a));
        });
    });
}

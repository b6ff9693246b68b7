//! A sample of `cargo xtask counts`: allocations, which need no valgrind.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{hint::black_box, sync::Arc};

use toolcrib_agent::{EndReason, RunOptions, Session};
use toolcrib_benches::{Caller, Menu, agent, engine, runtime, session::new_session, tools};
use toolcrib_engine::TurnOptions;
use toolcrib_store::SqliteStore;

/// The allocations of a run with this many iterations.
fn run(iterations: usize, is_stored: bool) -> u64 {
    let runtime = runtime().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut options = RunOptions::default();
    if is_stored {
        let store = Arc::new(SqliteStore::open(folder.path().join("sessions.db")).unwrap());
        let session = runtime.block_on(Session::create(store, new_session("growth"))).unwrap();
        options = options.session(&session);
    }
    let model = Caller::new(iterations, |_| {}).with_parsed_arguments();
    let agent = agent(Menu::Ten, Arc::new(model), iterations).unwrap();
    let running = async { agent.run("Read the ledgers.", options).await };
    let allocations = allocation_counter::measure(|| {
        assert_eq!(runtime.block_on(running).end_reason, EndReason::Answered);
    });
    allocations.count_total
}

#[test]
fn an_iteration_allocates_as_much_late_in_a_run_as_early() {
    for is_stored in [false, true] {
        // What is done once for a process is not part of an iteration.
        run(1, is_stored);
        let [early, middle, late] = [100, 500, 1_000].map(|iterations| run(iterations, is_stored));
        let (early, late) = ((middle - early) / 400, (late - middle) / 500);
        assert!(late * 10 <= early * 12, "{early} and then {late}, stored: {is_stored}");
    }
}

#[test]
fn a_menu_of_ten_times_the_tools_has_at_most_twelve_times_the_allocations() {
    let runtime = runtime().unwrap();
    let [small, large] = [100, 1_000].map(|size| {
        let engine = engine().tools(tools(size).unwrap()).build().unwrap();
        let allocations = allocation_counter::measure(|| {
            let mut turn = engine.turn(TurnOptions::default()).unwrap();
            runtime.block_on(async {
                black_box(turn.iteration().await.unwrap().menu().rendering());
            });
        });
        allocations.count_total
    });
    assert!(small > 0 && large <= 12 * small, "{small} and {large}");
}

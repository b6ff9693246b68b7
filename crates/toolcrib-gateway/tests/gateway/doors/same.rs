//! Equal through each door.

use proptest::prelude::*;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use toolcrib_core::ToolCall;

use super::{
    through::{
        Answer, Era, Session, agent, gateway, library, library_without_turns, refused_by_every_door,
    },
    world::{Caller, Made, World, a_caller, a_world, calls},
};

fn a_case() -> impl Strategy<Value = (World, Caller, Vec<Made>)> {
    a_world().prop_flat_map(|world| {
        let caller = a_caller(&world);
        (Just(world), caller, calls())
    })
}

/// A case with skills, and a caller without an active one.
fn a_case_with_skills() -> impl Strategy<Value = (World, Caller, Vec<Made>)> {
    let with_skills = |(world, ..): &(World, Caller, Vec<Made>)| world.has_skills();
    a_case().prop_filter("there are no skills", with_skills)
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn a_call_has_the_same_result_through_every_door((world, caller, calls) in a_case()) {
        runtime().block_on(async {
            if refused_by_every_door(&world, &caller).await {
                return Ok(());
            }
            let by_library = library(&world.engine(), caller.turn(), &calls).await;
            let by_agent = agent(&world.engine(), caller.turn(), &calls).await;
            prop_assert_eq!(&by_agent, &by_library, "agent, library");
            let by_session = gateway(&world.engine(), caller.access(), Era::Sessions, &calls).await;
            prop_assert_eq!(&by_session, &by_library, "session, library");

            let without_turns = library_without_turns(&world.engine(), || caller.turn(), &calls).await;
            let stateless = gateway(&world.engine(), caller.access(), Era::Stateless, &calls).await;
            prop_assert_eq!(&stateless, &without_turns, "stateless, library");
            Ok(())
        })?;
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn a_skill_that_is_read_counts_from_the_next_step_through_every_door(
        (world, caller, calls) in a_case_with_skills(),
    ) {
        runtime().block_on(async {
            if refused_by_every_door(&world, &caller).await {
                return Ok(());
            }
            let reads = ("read_skill", json!({"id": "s0"}));
            let all: Vec<Made> = [calls.as_slice(), &[reads], &calls].concat();

            let engine = world.engine();
            let mut turn = engine.turn(caller.turn()).unwrap();
            let (mut answers, mut menus) = (Vec::new(), Vec::new());
            for (name, args) in &all {
                let mut iteration = turn.iteration().await.unwrap();
                menus.push(iteration.menu().names().map(ToString::to_string).collect::<Vec<_>>());
                let call = ToolCall::new("id", *name, args.clone());
                answers.extend(iteration.execute(vec![call]).await.iter().map(Answer::of_result));
            }

            let by_agent = agent(&world.engine(), caller.turn(), &all).await;
            prop_assert_eq!(&by_agent.answers, &answers, "agent, library");

            let session = Session::open(&world.engine(), caller.access(), Era::Sessions).await;
            for (((name, args), answer), menu) in all.iter().zip(&answers).zip(&menus) {
                prop_assert_eq!(&session.menu().await, menu, "session, library, before {}", name);
                prop_assert_eq!(&session.call(name, args).await, answer, "session, library");
            }
            session.end().await;
            Ok(())
        })?;
    }
}

//! Concurrent iterations of one turn.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolcrib_core::{ErrorCode, Tool, ToolContext};
use toolcrib_engine::{Engine, TurnOptions};

use crate::support::{builder, call, engine, in_time, menu, skills, tool};

/// A tool that waits until it is released, and returns the number of concurrent calls.
struct Waiting {
    begun: Arc<Semaphore>,
    go: Arc<Semaphore>,
    most: Arc<AtomicUsize>,
}

impl Waiting {
    fn new() -> Self {
        Self {
            begun: Arc::new(Semaphore::new(0)),
            go: Arc::new(Semaphore::new(0)),
            most: Arc::default(),
        }
    }

    fn tool(&self) -> Tool {
        let (begun, go) = (Arc::clone(&self.begun), Arc::clone(&self.go));
        let (most, now) = (Arc::clone(&self.most), Arc::new(AtomicUsize::new(0)));
        builder("wait")
            .read_only()
            .handler(move |_: Value, _: ToolContext| {
                let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
                let (most, now) = (Arc::clone(&most), Arc::clone(&now));
                async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    begun.add_permits(1);
                    go.acquire().await.unwrap().forget();
                    now.fetch_sub(1, Ordering::SeqCst);
                    "waited"
                }
            })
            .unwrap()
    }

    /// Waits until this many calls have begun since the last time.
    async fn begun(&self, calls: u32) {
        self.begun.acquire_many(calls).await.unwrap().forget();
    }
}

fn waiting() -> (Waiting, Engine) {
    let waiting = Waiting::new();
    let engine = engine().tool(waiting.tool()).build().unwrap();
    (waiting, engine)
}

#[tokio::test]
async fn an_iteration_goes_on_while_the_next_ones_begin() {
    in_time(async {
        let (waiting, engine) = waiting();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut under_way = Vec::new();
        for number in 1..=3 {
            let mut iteration = turn.iteration().await.unwrap();
            assert_eq!((iteration.number(), turn.iterations()), (number, number));
            under_way.push(tokio::spawn(async move {
                iteration.execute(vec![call("wait", json!({}))]).await
            }));
            waiting.begun(1).await;
        }
        assert_eq!(waiting.most.load(Ordering::SeqCst), 3);
        waiting.go.add_permits(3);
        for ended in under_way {
            assert_eq!(&*ended.await.unwrap()[0].text, "waited");
        }
    })
    .await;
}

#[tokio::test]
async fn cancelling_an_iteration_ends_its_calls_and_nothing_else() {
    in_time(async {
        let (waiting, engine) = waiting();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut first = turn.iteration().await.unwrap();
        let token = first.cancellation().clone();
        let first = tokio::spawn(async move { first.execute(vec![call("wait", json!({}))]).await });
        let mut second = turn.iteration().await.unwrap();
        let second =
            tokio::spawn(async move { second.execute(vec![call("wait", json!({}))]).await });
        waiting.begun(2).await;
        token.cancel();
        assert_eq!(first.await.unwrap()[0].code, Some(ErrorCode::Cancelled));
        assert!(!turn.cancellation().is_cancelled());
        waiting.go.add_permits(1);
        assert!(second.await.unwrap()[0].is_ok());
        waiting.go.add_permits(1);
        let mut third = turn.iteration().await.unwrap();
        assert!(third.execute(vec![call("wait", json!({}))]).await[0].is_ok());
    })
    .await;
}

#[tokio::test]
async fn dropping_the_turn_cancels_the_iterations_that_are_left() {
    in_time(async {
        let (waiting, engine) = waiting();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let (mut running, mut idle) =
            (turn.iteration().await.unwrap(), turn.iteration().await.unwrap());
        let token = idle.cancellation().clone();
        let running =
            tokio::spawn(async move { running.execute(vec![call("wait", json!({}))]).await });
        waiting.begun(1).await;
        drop(turn);
        assert!(token.is_cancelled());
        assert_eq!(running.await.unwrap()[0].code, Some(ErrorCode::Cancelled));
        let late = idle.execute(vec![call("wait", json!({}))]).await;
        assert_eq!(late[0].code, Some(ErrorCode::Cancelled));
    })
    .await;
}

#[tokio::test]
async fn skills_that_two_iterations_read_at_the_same_time_are_both_active() {
    in_time(async {
        let waiting = Waiting::new();
        let engine = engine()
            .tools([waiting.tool(), tool("a1"), tool("b1")])
            .skills(skills([("a", &["a1"]), ("b", &["b1"])]))
            .build()
            .unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let (mut first, mut second) =
            (turn.iteration().await.unwrap(), turn.iteration().await.unwrap());
        // One id for a call each, and the first batch lasts longer than the second.
        let first = tokio::spawn(async move {
            let calls = [call("read_skill", json!({"id": "a"})), call("wait", json!({}))];
            first.execute(calls.into()).await
        });
        waiting.begun(1).await;
        second.execute(vec![call("read_skill", json!({"id": "b"}))]).await;
        let active = |skills: &[toolcrib_core::SkillId]| {
            skills.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(active(&turn.active_skills()), ["b"]);
        waiting.go.add_permits(1);
        assert!(first.await.unwrap().iter().all(toolcrib_core::ToolResult::is_ok));
        assert_eq!(active(&turn.active_skills()), ["b", "a"]);
        assert_eq!(menu(&turn.iteration().await.unwrap()), ["a1", "b1", "read_skill"]);
    })
    .await;
}

#[tokio::test]
async fn a_turn_without_read_skill_keeps_the_skills_that_it_began_with() {
    let engine = engine()
        .tools([tool("a1"), tool("b1")])
        .skills(skills([("a", &["a1"]), ("b", &["b1"])]))
        .build()
        .unwrap();
    let options = TurnOptions::default().skill(crate::support::skill_id("a")).without_read_skill();
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    assert_eq!(menu(&iteration), ["a1"]);
    let result = iteration.execute(vec![call("read_skill", json!({"id": "b"}))]).await.remove(0);
    assert_eq!(result.code, Some(ErrorCode::NotAvailable));
    assert_eq!(turn.active_skills().len(), 1);
}

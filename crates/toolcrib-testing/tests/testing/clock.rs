//! Time.

use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_agent::{EndReason, RunOptions};
use toolcrib_core::{ErrorCode, ToolCall, static_tools};
use toolcrib_engine::TurnOptions;
use toolcrib_testing::{Fault, faulty, in_time, model, paused, stalled, tool};

use crate::support::{agent, engine, failure};

/// The maximum real time for an hour of test time. If any deadline used another clock than tokio's,
/// these tests would take an hour.
const AT_ONCE: Duration = Duration::from_secs(100);

#[test]
fn the_deadlines_of_calls_turns_models_and_providers_are_on_the_paused_clock() {
    let began = Instant::now();
    let (hour, t) = (Duration::from_secs(3600), tool("t").never_returns());
    let slow = toolcrib_testing::TestTool::of(
        toolcrib_core::Tool::builder("slow").description("Slow.").timeout(hour),
    )
    .never_returns();
    let codes = paused(async {
        let engine = engine().tools([t.tool(), slow.tool()]).build().unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        let call = |name: &str| ToolCall::new(name, name, json!({}));
        let results = iteration.execute(vec![call("t"), call("slow")]).await;
        results.into_iter().map(|result| result.code.unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(codes, [ErrorCode::OutcomeUnknown; 2]);
    assert_eq!((t.running(), slow.running()), (0, 0));
    let hub = faulty(static_tools([])).always(Fault::Never);
    let waiting = agent(&model()).provider(hub.provider()).turn_timeout(hour).build().unwrap();
    let silent = agent(&stalled()).turn_timeout(hour).build().unwrap();
    for agent in [waiting, silent] {
        assert_eq!(paused(agent.run("Go", RunOptions::default())).end_reason, EndReason::Timeout);
    }
    assert_eq!(hub.pending(), 0);
    assert!(began.elapsed() < AT_ONCE);
}

#[test]
fn a_test_that_hangs_fails() {
    assert_eq!(paused(in_time(async { 7 })), 7);
    let began = Instant::now();
    let text = failure(|| paused(in_time(std::future::pending::<()>())));
    assert_eq!(text, "the test hangs: nothing came within 120s");
    assert!(began.elapsed() < AT_ONCE);
}

#[tokio::test]
async fn a_clock_inside_a_runtime_says_what_to_do_instead() {
    let text = failure(|| paused(async {}));
    assert!(text.contains("#[tokio::test(start_paused = true)]"), "{text}");
}

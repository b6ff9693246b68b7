//! An output that violated its schema was passed on as a success, and an unknown cost was 0.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use serde_json::{Value, json};
use toolcrib_core::{
    ErrorCode, ReliabilityAction, ReliabilityRule, Retry, Stage, Tool, ToolBuilder, ToolContext,
    ToolOutput, Usage,
};
use toolcrib_engine::{Engine, Redactor, TurnOptions};

use crate::support::{Log, builder, call, engine, once};

fn shaped(builder: ToolBuilder) -> ToolBuilder {
    builder.output_schema(json!({
        "type": "object",
        "properties": { "sum": { "type": "integer" }, "state": { "type": "string", "minLength": 12 } },
        "required": ["sum"],
    }))
}

fn answering(builder: ToolBuilder, output: ToolOutput) -> Tool {
    let body = move |_: Value, _: ToolContext| {
        let output = output.clone();
        async move { output }
    };
    shaped(builder).handler(body).unwrap()
}

#[tokio::test]
async fn data_that_breaks_its_schema_was_a_good_result() {
    let breaks = |data: Value| ToolOutput::text("the sum is 5").structured(data).cost(0.5);
    for (output, problem) in [
        (breaks(json!({ "sum": "hush-value" })), "`sum`"),
        (breaks(json!({ "total": 5 })), "`sum`: it is required"),
        (breaks(json!([5])), "all of it"),
        (ToolOutput::text("the sum is 5").cost(0.5), "there is no structured data"),
    ] {
        let engine = engine().tools([
            answering(builder("reads").read_only(), output.clone()),
            answering(builder("writes").untrusted(), output),
        ]);
        let engine = engine.build().unwrap();
        let read = once(&engine, "reads", json!({})).await;
        assert_eq!(read.code, Some(ErrorCode::ExecutionFailed));
        let written = once(&engine, "writes", json!({})).await;
        assert_eq!(written.code, Some(ErrorCode::OutcomeUnknown));
        assert!(written.value.contains("check before trying again"), "{}", written.value);
        for result in [read, written] {
            assert_eq!((&result.structured, result.cost_usd), (&None, Some(0.5)));
            assert!(result.value.contains(problem), "{problem}: {}", result.value);
            assert!(result.value.contains("the sum is 5"), "{}", result.value);
            assert!(!result.value.contains("hush-value"), "{}", result.value);
        }
    }
    let good = answering(builder("good"), breaks(json!({ "sum": 5, "more": true })));
    let result = once(&engine().tool(good).build().unwrap(), "good", json!({})).await;
    assert_eq!((result.code, result.structured), (None, Some(json!({ "sum": 5, "more": true }))));
}

#[tokio::test]
async fn data_that_cleaning_breaks_was_passed_on_in_the_shape_of_good_data() {
    let output = ToolOutput::text("5").structured(json!({ "sum": 5, "state": "s3cret-state" }));
    let redactor = Redactor::new(["s3cret-state".to_owned()]);
    let engine = Engine::builder().redactor(redactor).tool(answering(builder("t"), output));
    let result = once(&engine.build().unwrap(), "t", json!({})).await;
    assert!(result.is_ok());
    let data = result.structured.unwrap();
    assert!(toolcrib_engine::__internal::is_data_note(&data), "{data}");
}

#[tokio::test]
async fn an_output_schema_that_nobody_can_enforce_was_offered() {
    let odd = builder("odd").output_schema(json!({ "$ref": "https://elsewhere.example/schema" }));
    let odd = odd.handler(|_: Value, _: ToolContext| async { "" }).unwrap();
    let source =
        crate::support::provider("source", move |_| toolcrib_core::Listing::now([odd.clone()]));
    let engine = engine().provider(source).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let iteration = turn.iteration().await.unwrap();
    assert!(iteration.menu().is_empty());
    let withheld: Vec<_> = iteration.withheld().tools().collect();
    assert!(withheld[0].reason.contains("output schema"), "{}", withheld[0].reason);
}

#[tokio::test(start_paused = true)]
async fn a_rule_held_because_an_unknown_cost_was_0() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let failing = builder("t").read_only().handler(move |_: Value, _: ToolContext| {
        counted.fetch_add(1, SeqCst);
        async { Err::<String, _>(toolcrib_core::ToolError::failed("no")) }
    });
    let mut cheap = ReliabilityRule::new(ReliabilityAction::Retry(Retry::attempts(3)));
    cheap.when.stage = Some(Stage::Tool);
    cheap.when.cost_usd_below = Some(1.0);
    let engine = engine().tool(failing.unwrap()).reliability([cheap]).build().unwrap();
    for (usage, attempts) in [
        (Usage { cost_usd: Some(0.5), ..Usage::NOTHING }, 3),
        (Usage { cost_usd: Some(1.5), ..Usage::NOTHING }, 1),
        (Usage::default(), 1),
    ] {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let log = Log::of(turn.events().run());
        turn.recovery().used(usage);
        turn.iteration().await.unwrap().execute(vec![call("t", json!({}))]).await;
        assert_eq!(calls.swap(0, SeqCst), attempts, "{usage:?}");
        let failed = log.of_name("reliability.rule_failed");
        assert_eq!(failed.is_empty(), usage.cost_usd.is_some());
        let says = |event: &Value| event["error"].as_str().unwrap().contains("cost_usd_below");
        assert!(failed.iter().all(says), "{failed:?}");
    }
}

//! Recorded events, and messages of failed assertions.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolcrib_agent::{Agent, RunOptions};
use toolcrib_core::{EventKind, Events, Identity, TurnEvents};
use toolcrib_testing::{Answer, EventRecorder, call, model, paused, tool};

use crate::support::{agent, failure};

fn told() -> (Agent, EventRecorder) {
    let model = model()
        .then([call("t", json!({ "x": 1 })), call("t", json!({ "x": 2 }))])
        .then("All done.")
        .always("Hm.");
    let agent = agent(&model).tool(tool("t").says("it ran").tool()).build().unwrap();
    let seen = EventRecorder::attach(agent.engine().events());
    (agent, seen)
}

#[test]
fn events_are_kept_as_they_came_and_are_found_by_name_and_domain() {
    let (agent, seen) = told();
    let run = agent.run("Go", RunOptions::default());
    let own = EventRecorder::new();
    run.on("*", own.listener()).unwrap();
    paused(run);
    assert_eq!(own.events(), seen.events());
    assert_eq!(seen.names().first(), Some(&"agent.turn_start"));
    assert_eq!((seen.count("tool.*"), seen.of("tool.start").len()), (4, 2));
    assert_eq!(seen.count("tool.star"), 0, "a name is no beginning of a name");
    assert_eq!(seen.count("*"), seen.names().len());
    assert_eq!(seen.json_of("tool.start")[1]["args"], json!({ "x": 2 }));
    assert_eq!(seen.json_of("tool.start")[1]["type"], "tool.start");
    seen.assert_order([]);
    seen.assert_order([
        "agent.turn_start",
        "tool.*",
        "tool.*",
        "tool.end",
        "tool.end",
        "agent.turn_end",
    ]);
    seen.assert_none("tools.discovery_failed");
    seen.assert_count("model.start", 2);
    seen.assert_complete();
    seen.clear();
    assert!(seen.events().is_empty());
    seen.assert_complete();
}

#[test]
fn a_missing_event_is_named_with_how_far_the_order_went_and_the_whole_record() {
    let (agent, seen) = told();
    paused(agent.run("Go", RunOptions::default()));
    let text = failure(|| seen.assert_order(["agent.turn_start", "tool.end", "tool.start"]));
    let first_end = 1 + seen.names().iter().position(|name| *name == "tool.end").unwrap();
    let expected = format!(
        "expected these events in this order:\n  agent.turn_start: at 1\n  tool.end: at {first_end}\n  \
         tool.start: missing from here on\nthe record:\n   1      agent.turn_start           \
         {{\"message\":\"Go\",\"model\":\"test:model\",\"personality\":\"default\"}}\n   2   1  agent.iteration_start"
    );
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!(text.lines().count(), 5 + seen.events().len());
    assert!(text.contains("\"value\":\"it ran\""), "{text}");
    let text = failure(|| seen.assert_none("tool.*"));
    assert!(text.starts_with("expected no `tool.*`, found one at "), "{text}");
    assert!(text.contains("agent.turn_end"), "{text}");
    let text = failure(|| seen.assert_count("tool.end", 3));
    assert!(text.starts_with("expected 3 of `tool.end`, found 2\nthe record:\n"), "{text}");
    let text = failure(|| EventRecorder::new().assert_order(["a"]));
    assert!(text.ends_with("(no events)\n"), "{text}");
}

#[test]
fn a_record_of_several_runs_names_them_and_cuts_what_is_long() {
    let model = model().always("word ".repeat(200));
    let agent = agent(&model).build().unwrap();
    let seen = EventRecorder::attach(agent.engine().events());
    let (a, b) = paused(async {
        let run = |message: &'static str| agent.run(message, RunOptions::default()).into_future();
        tokio::join!(run("One"), run("Two"))
    });
    seen.assert_complete();
    let text = seen.to_string();
    for run in [a, b] {
        assert!(
            text.contains(&format!("agent.turn_end             run {}", run.turn_id)),
            "{text}"
        );
    }
    assert!(text.lines().all(|line| line.chars().count() < 400), "{text}");
    assert!(text.contains('…'));
}

#[test]
fn an_event_can_be_waited_for_whether_it_came_or_comes() {
    paused(async {
        let (agent, seen) = told();
        let run = agent.run("Go", RunOptions::default());
        let waiting = async {
            let event = seen.wait_for("tool.end").await;
            assert!(matches!(event.kind, EventKind::ToolEnd { ok: true, .. }));
            seen.wait_for("agent.turn_start").await
        };
        let (event, _) = tokio::join!(waiting, run.into_future());
        assert_eq!(event.seq, 1);
    });
}

#[test]
fn what_is_waited_for_in_vain_fails_with_the_record() {
    let (agent, seen) = told();
    let text = failure(|| {
        paused(async {
            agent.run("Go", RunOptions::default()).await;
            seen.wait_for("policy.denied").await
        })
    });
    assert!(text.starts_with("no `policy.denied` came within 120s\nthe record:\n   1 "), "{text}");
}

fn pen(seen: &EventRecorder) -> TurnEvents {
    let events = Events::new();
    events.on("*", seen.listener()).unwrap();
    TurnEvents::new("r".into(), Arc::new(Identity::conversation("c")), events, Events::new())
}

#[test]
fn a_record_that_is_not_whole_says_what_is_missing() {
    let start = || EventKind::ToolStart {
        call_id: "c1".into(),
        tool: "t".into(),
        origin: None,
        args: json!({}),
        args_digest: toolcrib_core::Digest::of(""),
        converted: Vec::new(),
    };
    let end = || EventKind::IterationEnd { tool_calls: 0 };
    let turn = || EventKind::TurnStart {
        message: "Go".into(),
        model: "m".into(),
        personality: "default".into(),
        dry_run: false,
        parent_turn: None,
    };
    for (kinds, problem) in [
        (vec![start()], "a tool.start of call `c1` has no end"),
        (vec![end()], "an end precedes its agent.iteration_start"),
        (vec![turn()], "`agent.turn_end` is not its last event"),
    ] {
        let seen = EventRecorder::new();
        let pen = pen(&seen);
        for kind in kinds {
            pen.emit(None, || kind);
        }
        let text = failure(|| seen.assert_complete());
        assert!(
            text.starts_with(&format!("the record of run r is incomplete: {problem}")),
            "{text}"
        );
    }
    let seen = EventRecorder::new();
    let pen = pen(&seen);
    pen.emit(None, end);
    seen.clear();
    pen.emit(None, end);
    assert!(failure(|| seen.assert_complete()).contains("the event number 1 is missing"));
}

#[test]
fn a_run_that_is_cut_short_is_complete_all_the_same() {
    let model = model().then(Answer::text("Well").stalls());
    let agent = agent(&model).turn_timeout(Duration::from_secs(5)).build().unwrap();
    let seen = EventRecorder::attach(agent.engine().events());
    paused(agent.run("Go", RunOptions::default()));
    seen.assert_complete();
    seen.assert_order(["model.start", "model.end", "agent.turn_end"]);
}

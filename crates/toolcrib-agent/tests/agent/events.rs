//! Events of a run: every declared event, in order, and none after the last.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_agent::RunOptions;
use toolcrib_core::{
    CallDecision, CancellationToken, DiscoveryError, ListContext, Listing, OnCollision,
    PendingCall, Policy, Progress, Rule, ToolContext, ToolOutput, ToolProvider, call_middleware,
    static_tools,
};
use toolcrib_engine::{Limits, OnFailure};
use toolcrib_testing::{EventRecorder, Fault, faulty, in_time, model};

use crate::support::{agent, builder, call, calls, endless, says, skills, tool};

/// The events of a run with many features. Events of reliability, of skill steps and of prompt
/// caches have separate tests.
const TOLD: [&str; 24] = [
    "agent.iteration_end",
    "agent.iteration_start",
    "agent.turn_end",
    "agent.turn_start",
    "events.lagged",
    "events.listener_failed",
    "model.end",
    "model.start",
    "model.text",
    "policy.checked",
    "policy.denied",
    "skill.activated",
    "tool.answered",
    "tool.end",
    "tool.progress",
    "tool.rewritten",
    "tool.start",
    "tools.collision",
    "tools.discovery_completed",
    "tools.discovery_failed",
    "tools.discovery_started",
    "tools.offered",
    "tools.provider_omitted",
    "tools.provider_stale",
];

/// Offers a second `t`, and fails from the third iteration on.
struct Moody;

impl ToolProvider for Moody {
    fn id(&self) -> &str {
        "moody"
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        if cx.iteration() > 2 {
            return Listing::failed(DiscoveryError::source_failed("gone"));
        }
        let again = builder("t").on_collision(OnCollision::Keep);
        Listing::now([again.handler(|_: Value, _: ToolContext| async { "" }).unwrap()])
    }
}

#[tokio::test]
async fn a_run_with_many_events_reports_all_of_them() {
    let busy = builder("busy")
        .input_schema(json!({ "type": "object" }))
        .handler(|_: Value, cx: ToolContext| async move {
            cx.progress(Progress::user("half way"));
            "done"
        })
        .unwrap();
    let middleware = call_middleware("middleware", |call: &PendingCall<'_>| {
        Ok(match call.tool.name().as_str() {
            "busy" => CallDecision::Rewrite(json!({ "hurry": true })),
            "t" => CallDecision::Answer(ToolOutput::text("again?")),
            _ => CallDecision::Proceed,
        })
    });
    let model = model()
        .then(calls([
            call("a", "read_skill", json!({"id": "s"})),
            call("b", "busy", json!({})),
            call("c", "secret", json!({})),
        ]))
        .always(calls([call("d", "t", json!({}))]));
    let agent = agent(&model)
        .tools([busy, tool("t"), tool("secret")])
        .skills(skills([("s", &["t", "busy"])]))
        .policy(Policy::of([Rule::deny("rule 1").tools(["secret"])]))
        .engine(|engine| {
            let down = || Fault::Error("down".into());
            let stale = faulty(static_tools([]));
            let stale = stale.then(Fault::None).then(Fault::None).always(down());
            let omitted = faulty(static_tools([])).always(down());
            engine
                .middleware(middleware)
                .provider_with(stale.provider(), OnFailure::Stale)
                .provider_with(omitted.provider(), OnFailure::Omit)
        })
        .provider(Arc::new(Moody))
        .build()
        .unwrap();
    let run = agent.run("Go", RunOptions::default());
    let log = EventRecorder::new();
    run.on("*", log.listener()).unwrap();
    run.on("model.start", |_| panic!("bug")).unwrap();
    in_time(run).await;
    let mut seen: BTreeSet<_> = log.names().into_iter().collect();
    // Specific to a stream; appears if its reader is slow.
    assert!(seen.insert("events.lagged"));
    assert_eq!(Vec::from_iter(seen), TOLD);
    for event in log.events() {
        assert_eq!(json!(event)["type"], event.kind.name());
    }
}

#[tokio::test]
async fn a_run_of_two_iterations_tells_its_story_in_order() {
    let model = model().then(calls([call("a", "t", json!({}))])).always(says("All done."));
    let agent = agent(&model).tool(tool("t")).build().unwrap();
    let run = agent.run("Go", RunOptions::default());
    let (own, all) = (EventRecorder::new(), EventRecorder::new());
    run.on("*", own.listener()).unwrap();
    agent.on("*", all.listener()).unwrap();
    let outcome = run.await;
    let iteration = |with_call: bool| {
        let mut names = vec![
            "agent.iteration_start",
            "tools.discovery_started",
            "tools.discovery_completed",
            "tools.offered",
            "model.start",
            "model.text",
            "model.text",
            "model.end",
        ];
        if with_call {
            names.extend(["tool.start", "tool.end"]);
        }
        names.push("agent.iteration_end");
        names
    };
    let story =
        [vec!["agent.turn_start"], iteration(true), iteration(false), vec!["agent.turn_end"]]
            .concat();
    assert_eq!(own.names(), story);
    assert_eq!(all.events(), own.events(), "the agent's listeners hear the same");
    let events = own.events();
    for (position, event) in events.iter().enumerate() {
        assert_eq!(event.seq, position as u64 + 1);
        assert_eq!(event.turn_id, outcome.turn_id);
        let outside = matches!(position, 0) || position == events.len() - 1;
        assert_eq!(event.iteration.is_none(), outside, "{event:?}");
    }
    assert!(events.windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms));
    let end = own.json_of("agent.turn_end").remove(0);
    assert_eq!((&end["stopped"], &end["answer"]), (&json!("answered"), &json!("All done.")));
    assert_eq!(end["usage"]["input_tokens"], 20);
    let start = own.json_of("agent.turn_start").remove(0);
    assert_eq!((&start["message"], &start["model"]), (&json!("Go"), &json!("test:model")));
    assert_eq!(own.json_of("model.start")[1]["messages"], 3);
}

#[tokio::test]
async fn a_stream_ends_after_the_turns_end() {
    let model = model().always(says("hi"));
    let agent = agent(&model).build().unwrap();
    let run = agent.run("Go", RunOptions::default());
    let mut stream = run.events();
    let reading = async {
        let mut names = vec![];
        while let Some(event) = stream.next().await {
            names.push(event.kind.name());
        }
        names
    };
    let (names, _) = in_time(async { tokio::join!(reading, run) }).await;
    assert_eq!(names.last(), Some(&"agent.turn_end"));
    assert_eq!(names.iter().filter(|name| **name == "agent.turn_end").count(), 1);
}

#[tokio::test]
async fn a_dropped_run_emits_its_end_as_the_last_event() {
    let agent = {
        let model = model().always(calls([call("a", "slow", json!({}))]));
        agent(&model).tool(endless(builder("slow"))).build().unwrap()
    };
    let run = agent.run("Go", RunOptions::default());
    let log = EventRecorder::new();
    run.on("*", log.listener()).unwrap();
    let mut stream = run.events();
    let begun = CancellationToken::new();
    let begins = begun.clone();
    run.on("tool.start", move |_| begins.cancel()).unwrap();
    tokio::select! {
        _ = run.into_future() => panic!("it never ends by itself"),
        () = begun.cancelled() => {}
    }
    let names = log.names();
    assert_eq!(names.last(), Some(&"agent.turn_end"), "{names:?}");
    assert_eq!(log.json_of("agent.turn_end")[0]["stopped"], "cancelled");
    let mut last = None;
    while let Some(event) = in_time(stream.next()).await {
        last = Some(event.kind.name());
    }
    assert_eq!(last, Some("agent.turn_end"));
    tokio::task::yield_now().await;
    assert_eq!(log.names(), names);
}

#[tokio::test]
async fn a_run_that_is_never_awaited_emits_no_event() {
    let model = model().always(says("hi"));
    let agent = agent(&model).build().unwrap();
    let log = EventRecorder::new();
    agent.on("*", log.listener()).unwrap();
    drop(agent.run("Go", RunOptions::default()));
    tokio::task::yield_now().await;
    assert!(log.events().is_empty() && model.requests().is_empty());
}

#[tokio::test]
async fn after_the_end_neither_tools_nor_listeners_make_events() {
    let (release, wait) = mpsc::channel::<()>();
    let (gone, is_gone) = mpsc::channel::<()>();
    let (wait, gone) = (Mutex::new(wait), Mutex::new(gone));
    let stubborn = builder("stubborn")
        .timeout(Duration::from_millis(20))
        .blocking(move |_: Value, cx: ToolContext| {
            let _ = wait.lock().unwrap().recv();
            cx.progress(Progress::user("still here"));
            gone.lock().unwrap().send(()).unwrap();
            "too late"
        })
        .unwrap();
    let model =
        model().then(calls([call("a", "stubborn", json!({}))])).always(says("It did not answer."));
    let agent = agent(&model)
        .tool(stubborn)
        .limits(Limits { cancel_grace: Duration::from_millis(20), ..Limits::default() })
        .build()
        .unwrap();
    let run = agent.run("Go", RunOptions::default());
    let log = EventRecorder::new();
    run.on("*", log.listener()).unwrap();
    let panicked = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&panicked);
    run.on("agent.turn_end", move |_| {
        once.store(true, Ordering::SeqCst);
        panic!("bug");
    })
    .unwrap();
    let outcome = in_time(run).await;
    assert!(outcome.tool_calls[0].abandoned && panicked.load(Ordering::SeqCst));
    let names = log.names();
    assert_eq!(names.last(), Some(&"agent.turn_end"));
    release.send(()).unwrap();
    is_gone.recv().unwrap();
    tokio::task::yield_now().await;
    assert_eq!(log.names(), names);
}

//! Events: their listeners, their order, and the effect of a bad listener.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::{Stream, StreamExt as _};
use serde_json::json;
use toolcrib_core::{Event, EventKind, Events, Subscription, TurnEvents, Usage};
use toolcrib_engine::{Engine, TurnOptions};

use crate::support::{Log, call, engine, in_time, tool};

fn small() -> Engine {
    engine().tool(tool("t")).build().unwrap()
}

async fn run_once(engine: &Engine, options: TurnOptions) {
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![call("t", json!({}))]).await;
}

const USUAL: [&str; 5] = [
    "tools.discovery_started",
    "tools.discovery_completed",
    "tools.offered",
    "tool.start",
    "tool.end",
];

fn turn_end() -> EventKind {
    EventKind::TurnEnd {
        stopped: "answered".into(),
        answer: None,
        iterations: 1,
        usage: Usage::default(),
        duration_ms: 0,
        error: None,
    }
}

/// A turn's event writer, with a hub of the engine and a separate one.
fn pen() -> (TurnEvents, Events, Events) {
    let (engine, run) = (Events::new(), Events::new());
    let identity = Arc::new(toolcrib_core::Identity::conversation("c"));
    let pen = TurnEvents::new("run".into(), identity, engine.clone(), run.clone());
    (pen, engine, run)
}

#[tokio::test]
async fn events_of_a_run_are_numbered_from_one_in_the_order_in_which_things_happen() {
    let engine = small();
    let hub = Events::new();
    let log = Log::of(&hub);
    run_once(&engine, TurnOptions::default().events(hub)).await;
    assert_eq!(log.names(), USUAL);
    let seqs: Vec<_> = log.events().iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5]);
    assert!(log.events().iter().all(|event| event.iteration == Some(1)));
}

/// Also without a provider: slow composing is not attributed to a source.
#[tokio::test]
async fn composing_is_a_stage_with_a_duration_of_its_own() {
    let slow = tool("t").available_if(|| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        Ok::<_, String>(())
    });
    let engine = engine().tool(slow).build().unwrap();
    let log = Log::of(engine.events());
    engine.turn(TurnOptions::default()).unwrap().iteration().await.unwrap();
    let offered = &log.of_name("tools.offered")[0];
    assert!(offered["duration_ms"].as_u64().unwrap() >= 20, "{offered}");
}

#[tokio::test]
async fn an_event_is_one_flat_object_with_type_run_number_and_identity() {
    let engine = small();
    let hub = Events::new();
    let log = Log::of(&hub);
    let mut options = TurnOptions::default().principal("ann").conversation("c-1").events(hub);
    options.turn_id = Some("run-1".into());
    run_once(&engine, options).await;
    let mut end = log.of_name("tool.end").remove(0);
    for measured in ["at_ms", "duration_ms"] {
        assert!(end[measured].take().is_u64());
    }
    assert_eq!(
        end,
        json!({
            "type": "tool.end", "turn_id": "run-1", "seq": 5, "iteration": 1, "at_ms": null,
            "identity": {"principal": "ann", "conversation": "c-1"},
            "call_id": "id-t", "tool": "t", "ok": true, "code": null, "value": "ran",
            "duration_ms": null, "produced_bytes": 3,
        })
    );
}

#[tokio::test]
async fn a_listener_receives_the_events_of_its_pattern() {
    let engine = small();
    let hub = Events::new();
    let heard = Arc::new(Mutex::new(Vec::new()));
    for pattern in ["*", "tools.*", "tool.*", "tools.offered"] {
        let heard = Arc::clone(&heard);
        hub.on(pattern, move |_| heard.lock().unwrap().push(pattern)).unwrap();
    }
    run_once(&engine, TurnOptions::default().events(hub)).await;
    let heard = heard.lock().unwrap();
    let count = |pattern| heard.iter().filter(|heard| **heard == pattern).count();
    assert_eq!(
        [count("*"), count("tools.*"), count("tool.*"), count("tools.offered")],
        [5, 3, 2, 1]
    );
    for pattern in ["tools", "TOOLS.*", ""] {
        assert!(Events::new().on(pattern, |_| {}).is_err(), "{pattern}");
    }
    assert_eq!(heard[..2], ["*", "tools.*"], "in the order in which they came");
}

#[tokio::test]
async fn listeners_of_the_engine_receive_all_runs_and_those_of_a_run_only_its_own() {
    let engine = small();
    let all = Log::of(engine.events());
    let hub = Events::new();
    let own = Log::of(&hub);
    run_once(&engine, TurnOptions::default().events(hub)).await;
    run_once(&engine, TurnOptions::default()).await;
    assert_eq!(own.names(), USUAL);
    assert_eq!(all.names(), [USUAL, USUAL].concat());
}

#[tokio::test]
async fn unsubscribing_twice_is_harmless_and_dropping_the_handle_does_nothing() {
    let engine = small();
    let hub = Events::new();
    let (one, other) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counting = |count: &Arc<AtomicUsize>| {
        let count = Arc::clone(count);
        move |_: &Event| {
            count.fetch_add(1, Ordering::SeqCst);
        }
    };
    let handle = hub.on("*", counting(&one)).unwrap();
    drop(hub.on("*", counting(&other)).unwrap());
    handle.unsubscribe();
    handle.unsubscribe();
    handle.clone().unsubscribe();
    run_once(&engine, TurnOptions::default().events(hub)).await;
    assert_eq!((one.load(Ordering::SeqCst), other.load(Ordering::SeqCst)), (0, 5));
}

#[tokio::test]
async fn a_listener_may_unsubscribe_itself_and_subscribe_others_while_it_is_called() {
    let engine = small();
    let hub = Events::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let handle: Arc<OnceLock<Subscription>> = Arc::default();
    let subscription = {
        let (calls, handle, hub_again) = (Arc::clone(&calls), Arc::clone(&handle), hub.clone());
        hub.on("*", move |_| {
            calls.fetch_add(1, Ordering::SeqCst);
            handle.get().unwrap().unsubscribe();
            let calls = Arc::clone(&calls);
            hub_again
                .on("tool.end", move |_| {
                    calls.fetch_add(100, Ordering::SeqCst);
                })
                .unwrap();
        })
        .unwrap()
    };
    assert!(handle.set(subscription).is_ok());
    in_time(run_once(&engine, TurnOptions::default().events(hub))).await;
    assert_eq!(calls.load(Ordering::SeqCst), 101);
}

#[tokio::test]
async fn a_listener_that_panics_is_removed_and_reported_and_the_run_goes_on() {
    let engine = small();
    let hub = Events::new();
    let calls = Arc::new(AtomicUsize::new(0));
    {
        let calls = Arc::clone(&calls);
        hub.on("tools.*", move |_| {
            calls.fetch_add(1, Ordering::SeqCst);
            panic!("bug in a listener");
        })
        .unwrap();
    }
    let log = Log::of(&hub);
    let mut turn = engine.turn(TurnOptions::default().events(hub)).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    assert!(iteration.execute(vec![call("t", json!({}))]).await[0].is_ok());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let mut names = USUAL.to_vec();
    names.insert(1, "events.listener_failed");
    assert_eq!(log.names(), names);
    let failed = &log.of_name("events.listener_failed")[0];
    assert_eq!(failed["pattern"], "tools.*");
    assert_eq!(failed["error"], "bug in a listener");
    let seqs: Vec<_> = log.events().iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6], "a report is an event of its own");
}

#[tokio::test]
async fn listeners_that_panic_at_reports_of_panics_come_to_an_end() {
    let engine = small();
    let hub = Events::new();
    for _ in 0..5 {
        hub.on("*", |_| panic!("bug")).unwrap();
    }
    let log = Log::of(&hub);
    run_once(&engine, TurnOptions::default().events(hub)).await;
    assert_eq!(log.of_name("events.listener_failed").len(), 5);
    assert_eq!(log.of_name("tool.end").len(), 1);
}

#[test]
fn the_end_of_a_turn_is_the_last_event_whatever_a_listener_does_then() {
    let (pen, _engine, run) = pen();
    run.on("agent.turn_end", |_| panic!("bug")).unwrap();
    let log = Log::of(&run);
    pen.emit(None, turn_end);
    pen.close();
    pen.emit(None, || EventKind::IterationStart);
    assert_eq!(log.names(), ["agent.turn_end"]);
}

#[test]
fn without_listeners_no_event_is_built() {
    let (pen, engine, run) = pen();
    let unbuilt = || -> EventKind { panic!("built for nobody") };
    pen.emit(None, unbuilt);
    let handle = run.on("*", |_| {}).unwrap();
    handle.unsubscribe();
    pen.emit(None, unbuilt);
    // A dropped reader does not count either, once that is noticed.
    drop((run.stream(), engine.stream()));
    pen.emit(None, || EventKind::IterationStart);
    pen.emit(None, unbuilt);
}

#[tokio::test]
async fn a_stream_gives_everything_and_ends_with_the_run() {
    let engine = small();
    let hub = Events::new();
    let (mut one, mut other) = (hub.stream(), hub.stream());
    run_once(&engine, TurnOptions::default().events(hub.clone())).await;
    for stream in [&mut one, &mut other] {
        let mut names = vec![];
        while let Some(event) = in_time(stream.next()).await {
            names.push(event.kind.name());
        }
        assert_eq!(names, USUAL);
        assert!(in_time(stream.next()).await.is_none());
    }
    // It has ended; a late subscriber does not wait.
    let mut late = hub.stream();
    assert!(in_time(late.next()).await.is_none());
}

#[tokio::test]
async fn a_stream_of_events_is_a_stream_with_all_adapters() {
    let engine = small();
    let hub = Events::new();
    let mut names: Pin<Box<dyn Stream<Item = &str> + Send + Sync>> =
        Box::pin(hub.stream().map(|event| event.kind.name()));
    run_once(&engine, TurnOptions::default().events(hub)).await;
    assert_eq!(names.by_ref().collect::<Vec<_>>().await, USUAL);
    assert!(names.next().await.is_none(), "it may be asked again after its end");
}

#[tokio::test]
async fn a_reader_that_is_too_slow_loses_the_oldest_and_is_told_how_many() {
    let (pen, _engine, run) = pen();
    let mut stream = run.stream();
    for _ in 0..1_500 {
        pen.emit(None, || EventKind::IterationStart);
    }
    pen.emit(None, turn_end);
    pen.close();
    let mut events = vec![];
    while let Some(event) = in_time(stream.next()).await {
        events.push(event);
    }
    let EventKind::Lagged { missed } = events[0].kind else {
        panic!("{:?}", events[0]);
    };
    assert_eq!(missed, 1_501 - 1_024);
    assert_eq!(events.len(), 1 + 1_024);
    assert_eq!(events[1].seq, missed + 1, "the next is the first that was not lost");
    assert_eq!(events.last().unwrap().kind.name(), "agent.turn_end");
}

#[tokio::test]
async fn a_slow_reader_does_not_hold_up_the_run_and_a_quick_one_misses_nothing() {
    let (pen, _engine, run) = pen();
    let (_slow, mut quick) = (run.stream(), run.stream());
    for n in 1..=3_000 {
        pen.emit(None, || EventKind::IterationStart);
        assert_eq!(in_time(quick.next()).await.unwrap().seq, n);
    }
}

#[tokio::test]
async fn a_turn_that_is_dropped_half_way_ends_its_streams() {
    let engine = small();
    let hub = Events::new();
    let mut stream = hub.stream();
    let mut turn = engine.turn(TurnOptions::default().events(hub)).unwrap();
    turn.iteration().await.unwrap();
    drop(turn);
    let mut names = vec![];
    while let Some(event) = in_time(stream.next()).await {
        names.push(event.kind.name());
    }
    assert_eq!(names, USUAL[..3]);
}

/// Sleeps, so that the measured time is more than zero.
fn slowly(name: &'static str) -> toolcrib_core::Tool {
    crate::support::builder(name)
        .handler(|_: serde_json::Value, cx: toolcrib_core::ToolContext| async move {
            cx.progress(toolcrib_core::Progress::user("half way").percent(50));
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            "done"
        })
        .unwrap()
}

#[tokio::test]
async fn events_contain_sources_calls_counts_and_durations() {
    let named_by_nobody = {
        struct Anonymous(toolcrib_core::Tool);
        impl toolcrib_core::ToolProvider for Anonymous {
            fn list(self: Arc<Self>, _: &toolcrib_core::ListContext) -> toolcrib_core::Listing {
                toolcrib_core::Listing::later(async move {
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    Ok([self.0.clone()].into())
                })
            }
        }
        Arc::new(Anonymous(tool("anonymous")))
    };
    let engine = engine().tool(slowly("t")).provider(named_by_nobody).build().unwrap();
    let log = Log::of(engine.events());
    run_once(&engine, TurnOptions::default()).await;

    let listed = log.of_name("tools.discovery_completed");
    let (fast, late) = (&listed[0], &listed[1]);
    assert_eq!((&fast["provider"], &fast["tool_count"]), (&json!("registry"), &json!(1)));
    assert_eq!((&late["provider"], &late["tool_count"]), (&json!("unnamed"), &json!(1)));
    assert!(late["duration_ms"].as_u64().unwrap() >= 20, "{late}");

    let progress = &log.of_name("tool.progress")[0];
    assert_eq!((&progress["tool"], &progress["call_id"]), (&json!("t"), &json!("id-t")));
    assert_eq!((&progress["percent"], &progress["audience"]), (&json!(50), &json!("user")));
    let end = &log.of_name("tool.end")[0];
    assert!(end["duration_ms"].as_u64().unwrap() >= 20, "{end}");
    let times: Vec<_> = log.events().iter().map(|event| event.at_ms).collect();
    assert!(times.is_sorted() && *times.last().unwrap() >= 40, "{times:?}");
}

//! Injected faults of a provider.

use std::{sync::Arc, time::Duration};

use toolcrib_agent::{EndReason, RunOptions};
use toolcrib_core::{
    CancellationToken, DiscoveryErrorClass, Identity, ListContext, Listing, ToolName, static_tools,
};
use toolcrib_engine::{TurnError, TurnOptions};
use toolcrib_testing::{EventRecorder, Fault, FaultyProvider, faulty, model, paused, tool};

use crate::support::{agent, engine};

fn hub() -> FaultyProvider {
    faulty(static_tools([tool("search").tool()]))
}

/// The names of each iteration of one turn, or the class of its failure.
fn iterations(hub: &FaultyProvider, count: usize) -> Vec<Result<String, DiscoveryErrorClass>> {
    let engine = engine().tool(tool("own").tool()).provider(hub.provider()).build().unwrap();
    paused(async {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut seen = vec![];
        for _ in 0..count {
            seen.push(match turn.iteration().await {
                Ok(iteration) => {
                    let names: Vec<_> = iteration.menu().names().map(ToolName::as_str).collect();
                    Ok(names.join(" "))
                }
                Err(TurnError::Discovery(error)) => Err(error.class()),
                Err(other) => panic!("{other}"),
            });
        }
        seen
    })
}

#[test]
fn faults_come_one_per_listing_and_then_it_is_sound_again() {
    let hub = hub()
        .then(Fault::Error("refused".into()))
        .then(Fault::Panic("bug".into()))
        .then(Fault::None)
        .then(Fault::Tools(vec![tool("other").tool()]))
        .then(Fault::Error("later".into()).after(Duration::from_secs(5)))
        .then(Fault::Panic("later".into()).after(Duration::ZERO))
        .then(Fault::None.after(Duration::from_secs(5)));
    let (source, panic) = (DiscoveryErrorClass::Source, DiscoveryErrorClass::Panic);
    let (sound, other) = ("own search".to_owned(), "own other".to_owned());
    assert_eq!(
        iterations(&hub, 8),
        [
            Err(source),
            Err(panic),
            Ok(sound.clone()),
            Ok(other),
            Err(source),
            Err(panic),
            Ok(sound.clone()),
            Ok(sound),
        ]
    );
    assert_eq!((hub.listings(), hub.pending()), (8, 0));
    let asked: Vec<_> = hub.asked().iter().map(ListContext::iteration).collect();
    assert_eq!(asked, [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_fault_can_last() {
    let hub = hub().then(Fault::None).always(Fault::Error("down".into()));
    let down = Err(DiscoveryErrorClass::Source);
    assert_eq!(iterations(&hub, 3), [Ok("own search".into()), down.clone(), down]);
}

#[test]
fn a_sound_listing_is_that_of_the_provider_inside_now_or_later() {
    let cx = ListContext::new(Arc::new(Identity::conversation("c")), CancellationToken::new());
    let now = hub().provider();
    assert_eq!((now.id(), &*now.path()), ("faulty", "faulty > static"));
    assert!(matches!(now.list(&cx), Listing::Now(Ok(_))));
    let later = hub().always(Fault::None.after(Duration::ZERO));
    let listing = later.provider().list(&cx);
    assert!(matches!(listing, Listing::Later(_)));
    assert_eq!(later.pending(), 1);
    drop(listing);
    assert_eq!(later.pending(), 0);
}

#[test]
fn a_listing_that_never_ends_goes_with_the_run() {
    let hub = hub().then(Fault::Never);
    let model = model().then("Hello.");
    let agent = agent(&model).provider(hub.provider()).build().unwrap();
    let seen = EventRecorder::attach(agent.engine().events());
    let outcome = paused(async {
        let cancel = CancellationToken::new();
        let run = agent.run("Go", TurnOptions::default().cancellation(cancel.clone()));
        let waiting = async {
            seen.wait_for("tools.discovery_started").await;
            assert_eq!(hub.pending(), 1);
            cancel.cancel();
        };
        tokio::join!(run.into_future(), waiting).0
    });
    assert_eq!((outcome.end_reason, hub.pending()), (EndReason::Cancelled, 0));
    seen.assert_order(["tools.discovery_failed", "agent.turn_end"]);
    let outcome = paused(agent.run("Go", RunOptions::default()));
    assert_eq!(outcome.answer.as_deref(), Some("Hello."));
}

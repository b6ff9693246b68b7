//! Tools with availability checks: at each listing, and again at the call.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use serde_json::json;
use toolcrib_core::{Effect, ErrorCode, OnCollision, WithheldBy, static_tools};
use toolcrib_engine::{Engine, Redactor, Turn, TurnOptions};

use crate::support::{Log, builder, call, engine, menu, offered, policy, rule_on, says, tool, why};

fn turn(engine: &toolcrib_engine::Engine) -> Turn {
    engine.turn(TurnOptions::default()).unwrap()
}

/// The result of a check, set from outside.
fn switch() -> (Arc<AtomicBool>, impl Fn() -> Result<(), &'static str> + Send + Sync + 'static) {
    let on = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&on);
    (on, move || if asked.load(Ordering::SeqCst) { Ok(()) } else { Err("the key is gone") })
}

#[tokio::test]
async fn a_tool_that_is_not_available_is_withheld_with_its_reason_and_comes_back() {
    let (on, check) = switch();
    let engine = engine()
        .tool(tool("plain"))
        .tool(says(builder("keyed").available_if(check), "ran"))
        .build();
    let engine = engine.unwrap();
    let mut turn = turn(&engine);
    let first = turn.iteration().await.unwrap();
    assert_eq!(menu(&first), ["plain", "keyed"]);

    on.store(false, Ordering::SeqCst);
    let second = turn.iteration().await.unwrap();
    assert_eq!(menu(&second), ["plain"]);
    let withheld = second.withheld().tool("keyed").unwrap();
    assert_eq!(withheld.by, WithheldBy::Availability);
    insta::assert_snapshot!(withheld.reason, @"it is not available now: the key is gone");

    on.store(true, Ordering::SeqCst);
    let third = turn.iteration().await.unwrap();
    assert_eq!(menu(&third), ["plain", "keyed"]);
    assert_eq!(third.menu().fingerprint(), first.menu().fingerprint());
    // Nothing has changed since: the menu is used again.
    let fourth = turn.iteration().await.unwrap();
    assert!(Arc::ptr_eq(third.menu(), fourth.menu()));
}

#[tokio::test]
async fn a_reason_that_changes_is_told_though_the_menu_is_the_same() {
    let reason = Arc::new(Mutex::new("it rains"));
    let said = Arc::clone(&reason);
    let check = move || Err::<(), _>(*said.lock().unwrap());
    let engine = engine().tool(says(builder("kite").available_if(check), "ran")).build().unwrap();
    let mut turn = turn(&engine);
    assert!(why(turn.iteration().await.unwrap().withheld(), "kite").ends_with("it rains"));
    *reason.lock().unwrap() = "there is no wind";
    assert!(why(turn.iteration().await.unwrap().withheld(), "kite").ends_with("there is no wind"));
}

#[tokio::test]
async fn what_went_between_listing_and_call_is_refused_and_its_body_does_not_run() {
    let (on, check) = switch();
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let keyed = builder("keyed")
        .available_if(check)
        .handler(move |_: serde_json::Value, _| {
            count.fetch_add(1, Ordering::SeqCst);
            async { "ran" }
        })
        .unwrap();
    let engine = engine().tool(keyed).build().unwrap();
    let log = Log::of(engine.events());
    let mut turn = turn(&engine);
    let mut iteration = turn.iteration().await.unwrap();
    assert_eq!(menu(&iteration), ["keyed"]);
    on.store(false, Ordering::SeqCst);
    let refused = iteration.execute(vec![call("keyed", json!({}))]).await.remove(0);
    assert_eq!(refused.code, Some(ErrorCode::NotAvailable));
    assert_eq!(&*refused.text, "the tool `keyed` is not available now");
    assert_eq!(refused.cause.as_deref(), Some("the key is gone"));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(log.of_name("tool.end").len(), 1);
    on.store(true, Ordering::SeqCst);
    assert!(iteration.execute(vec![call("keyed", json!({}))]).await.remove(0).code.is_none());
}

#[tokio::test]
async fn a_panicking_check_makes_its_tool_unavailable() {
    let panics = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&panics);
    let check = move || {
        assert!(!asked.load(Ordering::SeqCst), "no such drive");
        true
    };
    let engine = engine().tool(says(builder("t").available_if(check), "ran")).build().unwrap();
    let mut turn = turn(&engine);
    let iteration = turn.iteration().await.unwrap();
    insta::assert_snapshot!(
        why(iteration.withheld(), "t"),
        @"it is not available now: its availability check panicked: no such drive"
    );
    panics.store(false, Ordering::SeqCst);
    let mut iteration = turn.iteration().await.unwrap();
    panics.store(true, Ordering::SeqCst);
    let refused = iteration.execute(vec![call("t", json!({}))]).await.remove(0);
    assert_eq!(refused.code, Some(ErrorCode::NotAvailable));
    assert_eq!(&*refused.text, "the tool `t` is not available now");
    let cause = refused.cause.as_deref().unwrap();
    assert!(cause.ends_with("panicked: no such drive"), "{cause}");
}

#[tokio::test]
async fn a_call_that_policy_denies_is_not_asked_about() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let check = move || {
        count.fetch_add(1, Ordering::SeqCst);
        true
    };
    let gone = says(builder("gone").available_if(check), "ran");
    let denied = policy([rule_on("no", Effect::Deny, "gone")]);
    let engine = engine().tool(gone).policy(denied).build().unwrap();
    let mut turn = turn(&engine);
    let mut iteration = turn.iteration().await.unwrap();
    let before = asked.load(Ordering::SeqCst);
    iteration.execute(vec![call("gone", json!({}))]).await;
    assert_eq!(asked.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn a_tool_that_is_unavailable_and_denied_has_both_reasons() {
    let gone = says(builder("gone").available_if(|| false), "ran");
    let denied = policy([rule_on("no", Effect::Deny, "gone")]);
    let engine = engine().tool(gone).policy(denied).build().unwrap();
    let iteration = turn(&engine).iteration().await.unwrap();
    let said = why(iteration.withheld(), "gone");
    let both = "it is not available now: its availability check failed; no denies it";
    assert!(said.starts_with(both), "{said}");
}

#[tokio::test]
async fn all_checks_must_hold_and_survive_what_is_made_of_the_tool() {
    let (on, check) = switch();
    let keyed = says(builder("keyed").available_if(|| true).available_if(check), "ran");
    let (second, also) = switch();
    let keyed = keyed.with_plugin(&"p".into()).available_if(also);
    assert!(keyed.has_availability_check() && keyed.check_available().is_ok());
    let engine = engine().provider(static_tools([keyed])).build().unwrap();
    for (one, other) in [(false, true), (true, false), (false, false)] {
        on.store(one, Ordering::SeqCst);
        second.store(other, Ordering::SeqCst);
        assert!(offered(&engine, TurnOptions::default()).await.is_empty());
    }
    on.store(true, Ordering::SeqCst);
    second.store(true, Ordering::SeqCst);
    assert_eq!(offered(&engine, TurnOptions::default()).await, ["keyed"]);
}

#[tokio::test]
async fn an_unavailable_tool_does_not_claim_its_name() {
    let (on, check) = switch();
    let first = says(builder("search").available_if(check).origin("first"), "first");
    let second = says(builder("search").on_collision(OnCollision::Keep).origin("second"), "second");
    let engine =
        engine().provider(static_tools([first])).provider(static_tools([second])).build().unwrap();
    let mut turn = turn(&engine);
    let mut said = Vec::new();
    for available in [true, false, true] {
        on.store(available, Ordering::SeqCst);
        let mut iteration = turn.iteration().await.unwrap();
        said.push(iteration.execute(vec![call("search", json!({}))]).await.remove(0).value);
    }
    assert_eq!(said, ["first".into(), "second".into(), "first".into()] as [Arc<str>; 3]);
}

#[tokio::test]
async fn a_reason_that_quotes_a_secret_is_redacted_wherever_it_is_told() {
    const SECRET: &str = "swordfish-4711";
    let check = || Err::<(), _>("GET https://key.test/?key=swordfish-4711 failed");
    let engine = Engine::builder()
        .redactor(Redactor::new([SECRET.to_owned()]))
        .tool(says(builder("keyed").available_if(check), "ran"))
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    let mut turn = turn(&engine);
    let iteration = turn.iteration().await.unwrap();
    let told = [
        iteration.withheld().tool("keyed").unwrap().reason,
        serde_json::to_string(&iteration.why("keyed").unwrap()).unwrap(),
        format!("{:?}", log.events()),
    ];
    for text in told {
        assert!(text.contains("https://key.test"), "{text}");
        assert!(!text.contains(SECRET), "{text}");
    }
}

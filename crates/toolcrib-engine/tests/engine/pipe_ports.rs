//! The ports that a call passes: capability granter, journal, reducers.

use std::{
    error::Error,
    sync::{Arc, Mutex},
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolcrib_core::{
    CancellationToken, CapabilityGranter, ErrorCode, Journal, PendingCall, Reducer, ReducerContext,
    Tool, ToolContext, ToolContextParts, ToolError, ToolOutput, ToolResult,
};
use toolcrib_engine::{BuildError, DuplicateReducerError, TurnOptions};

use crate::support::{Log, builder, call, engine, in_time, once, says};

/// The events, in order.
type Diary = Arc<Mutex<Vec<String>>>;

fn noted(diary: &Diary) -> Vec<String> {
    diary.lock().unwrap().clone()
}

fn diarist(name: &str, diary: &Diary, outcome: fn() -> Result<&'static str, ToolError>) -> Tool {
    let diary = Arc::clone(diary);
    builder(name)
        .input_schema(json!({"type": "object"}))
        .handler(move |_: Value, _: ToolContext| {
            diary.lock().unwrap().push("effect".to_owned());
            async move { outcome() }
        })
        .unwrap()
}

struct Grant<F>(F);

impl<F> CapabilityGranter for Grant<F>
where
    F: Fn(PendingCall<'_>, ToolContext) -> Result<ToolContext, ToolError> + Send + Sync + 'static,
{
    fn grant(&self, call: PendingCall<'_>, cx: ToolContext) -> Result<ToolContext, ToolError> {
        (self.0)(call, cx)
    }
}

#[tokio::test]
async fn a_granter_that_refuses_or_panics_keeps_the_body_from_running() {
    let diary = Diary::default();
    let body = || diarist("t", &diary, || Ok("ran"));
    let refusing = engine()
        .tool(says(builder("other").untrusted(), ""))
        .tool(body())
        .capability_granter(Grant(|_: PendingCall<'_>, _| {
            Err(ToolError::new(ErrorCode::NotAvailable, "no such folder here").caused_by("reach"))
        }))
        .build()
        .unwrap();
    let result = once(&refusing, "t", json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::NotAvailable));
    assert_eq!((&*result.text, result.cause.as_deref()), ("no such folder here", Some("reach")));
    let ours = once(&refusing, "other", json!({})).await;
    assert_eq!(ours.text, ours.value, "a refusal is ours, so it is not fenced");

    let panicking = engine()
        .tool(body())
        .capability_granter(Grant(|_: PendingCall<'_>, _| panic!("hunter2")))
        .build()
        .unwrap();
    let result = once(&panicking, "t", json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::NotAvailable));
    assert!(!result.text.contains("hunter2"));
    assert_eq!(result.cause.as_deref(), Some("the capability granter panicked: hunter2"));
    assert_eq!(noted(&diary), [""; 0]);
}

#[tokio::test]
async fn the_body_gets_the_context_that_the_granter_made() {
    let where_am_i = builder("where")
        .handler(|_: Value, cx: ToolContext| async move { cx.working_dir().display().to_string() })
        .unwrap();
    let engine = engine()
        .tool(where_am_i)
        .capability_granter(Grant(|call: PendingCall<'_>, _| {
            assert_eq!(&**call.call_id, "id-where");
            let mut parts = ToolContextParts::detached();
            parts.working_dir = std::path::Path::new("/bounded").into();
            Ok(parts.into())
        }))
        .build()
        .unwrap();
    assert_eq!(&*once(&engine, "where", json!({})).await.value, "/bounded");
}

type MakesIntent = fn() -> Intent;
type Intent = BoxFuture<'static, Result<(), Box<dyn Error + Send + Sync>>>;

struct Book {
    diary: Diary,
    intent: MakesIntent,
    outcome: fn(),
}

impl Book {
    fn keeping(diary: &Diary) -> Self {
        Self { diary: Arc::clone(diary), intent: || Box::pin(async { Ok(()) }), outcome: || {} }
    }

    fn note(&self, what: &str, call: &PendingCall<'_>) {
        let line = format!("{what} {} {}", call.call_id, call.args);
        self.diary.lock().unwrap().push(line);
    }
}

impl Journal for Book {
    fn intent<'a>(
        &'a self,
        call: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        self.note("intent", &call);
        (self.intent)()
    }

    fn outcome<'a>(
        &'a self,
        call: PendingCall<'a>,
        code: Option<ErrorCode>,
        _: Option<&'a ToolResult>,
    ) -> BoxFuture<'a, ()> {
        let code = code.map_or("ok", ErrorCode::as_str);
        self.note(code, &call);
        (self.outcome)();
        Box::pin(async {})
    }
}

#[tokio::test]
async fn the_intent_is_written_before_the_effect_and_the_outcome_after() {
    let diary = Diary::default();
    let engine = engine()
        .tool(diarist("good", &diary, || Ok("ran")))
        .tool(diarist("bad", &diary, || Err(ToolError::failed("no"))))
        .journal(Book::keeping(&diary))
        .build()
        .unwrap();
    once(&engine, "good", json!({"n": 1})).await;
    once(&engine, "bad", json!({})).await;
    once(&engine, "unknown", json!({})).await;
    once(&engine, "good", json!(["no object"])).await;
    assert_eq!(
        noted(&diary),
        [
            "intent id-good {\"n\":1}",
            "effect",
            "ok id-good {\"n\":1}",
            "intent id-bad {}",
            "effect",
            "execution_failed id-bad {}",
        ],
        "a refused call has no intent"
    );
}

#[tokio::test]
async fn a_call_whose_intent_cannot_be_written_is_not_made() {
    let intents: [(MakesIntent, &str); 3] = [
        (|| Box::pin(async { Err("the disk is full".into()) }), "the disk is full"),
        (|| panic!("hunter2"), "the journal panicked: hunter2"),
        (|| Box::pin(async { panic!("hunter2") }), "the journal panicked: hunter2"),
    ];
    for (intent, cause) in intents {
        let diary = Diary::default();
        let engine = engine()
            .tool(diarist("t", &diary, || Ok("ran")))
            .journal(Book { intent, ..Book::keeping(&diary) })
            .build()
            .unwrap();
        let result = once(&engine, "t", json!({})).await;
        assert_eq!(result.code, Some(ErrorCode::ExecutionFailed));
        assert_eq!(&*result.text, "the call could not be recorded, so it was not made");
        assert_eq!(result.cause.as_deref(), Some(cause));
        assert_eq!(noted(&diary), ["intent id-t {}"]);
    }
}

#[tokio::test]
async fn a_journal_that_fails_after_the_effect_does_not_change_what_came_of_it() {
    let diary = Diary::default();
    let engine = engine()
        .tool(diarist("t", &diary, || Ok("ran")))
        .journal(Book { outcome: || panic!("hunter2"), ..Book::keeping(&diary) })
        .build()
        .unwrap();
    let result = once(&engine, "t", json!({})).await;
    assert_eq!((result.code, &*result.value), (None, "ran"));
}

#[tokio::test]
async fn cancellation_does_not_wait_for_a_journal_that_hangs() {
    let diary = Diary::default();
    let engine = engine()
        .tool(diarist("t", &diary, || Ok("ran")))
        .journal(Book { intent: || Box::pin(std::future::pending()), ..Book::keeping(&diary) })
        .build()
        .unwrap();
    let cancel = CancellationToken::new();
    let options = TurnOptions::default().cancellation(cancel.clone());
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let cancelling = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let calls = vec![call("t", json!({}))];
    let (results, ()) = in_time(async { tokio::join!(iteration.execute(calls), cancelling) }).await;
    assert_eq!(results[0].code, Some(ErrorCode::Cancelled));
    assert!(!noted(&diary).contains(&"effect".to_owned()));
}

struct Reduce<F>(&'static str, F);

impl<F> Reducer for Reduce<F>
where
    F: Fn(ToolOutput, &Value) -> ToolOutput + Send + Sync + 'static,
{
    fn tool_name(&self) -> &str {
        self.0
    }

    fn reduce(&self, output: ToolOutput, cx: ReducerContext<'_>) -> ToolOutput {
        let args = cx.args;
        (self.1)(output, args)
    }
}

fn priced(name: &str, text: &'static str) -> Tool {
    builder(name)
        .input_schema(json!({"type": "object"}))
        .handler(move |_: Value, _: ToolContext| async move {
            ToolOutput::text(text).structured(json!({"n": 1})).cost(0.25)
        })
        .unwrap()
}

#[tokio::test]
async fn a_reducer_trims_its_own_tool_with_the_arguments_at_hand_and_cannot_lose_the_cost() {
    let engine = engine()
        .tools([priced("long", "a b c d"), priced("Long", "a b c d")])
        .reducer(Reduce("long", |output: ToolOutput, args: &Value| {
            let keep = usize::try_from(args["keep"].as_u64().unwrap()).unwrap();
            let words: Vec<_> = output.value.split(' ').take(keep).collect();
            ToolOutput::text(words.join(" "))
        }))
        .build()
        .unwrap();
    let result = once(&engine, "long", json!({"keep": 2})).await;
    assert_eq!((&*result.value, result.cost_usd), ("a b", Some(0.25)));
    assert_eq!(result.structured, None, "what it drops is dropped");
    assert_eq!(&*once(&engine, "Long", json!({"keep": 2})).await.value, "a b c d");
}

#[tokio::test]
async fn a_reducer_that_panics_leaves_the_output_as_it_was() {
    let engine = engine()
        .tool(priced("t", "original"))
        .reducer(Reduce("t", |_: ToolOutput, _: &Value| panic!("bug")))
        .build()
        .unwrap();
    let result = once(&engine, "t", json!({})).await;
    assert_eq!((result.code, &*result.value), (None, "original"));
    assert_eq!((result.structured, result.cost_usd), (Some(json!({"n": 1})), Some(0.25)));
}

#[tokio::test]
async fn an_error_is_not_reduced() {
    let engine = engine()
        .tool(
            builder("t")
                .handler(|_: Value, _: ToolContext| async {
                    Err::<String, _>(ToolError::failed("no"))
                })
                .unwrap(),
        )
        .reducer(Reduce("t", |_: ToolOutput, _: &Value| ToolOutput::text("yes")))
        .build()
        .unwrap();
    assert_eq!(&*once(&engine, "t", json!({})).await.value, "no");
}

#[tokio::test]
async fn reducing_comes_before_cutting() {
    let long = says(builder("t").max_result_chars(100), &"x".repeat(500));
    let engine = engine()
        .tool(long)
        .reducer(Reduce("t", |output: ToolOutput, _: &Value| {
            ToolOutput::text(output.value.replace('x', "yz"))
        }))
        .build()
        .unwrap();
    let result = once(&engine, "t", json!({})).await;
    assert!(result.value.starts_with("yzyz"));
    assert!(result.value.contains("[truncated — 1000 chars total"), "{}", result.value);
    assert!(result.value.chars().count() <= 100);
}

#[test]
fn two_reducers_for_one_tool_are_a_build_error() {
    let same = || Reduce("t", |output: ToolOutput, _: &Value| output);
    let built = engine().reducer(same()).reducer(same()).build();
    assert!(
        matches!(built, Err(BuildError::DuplicateReducer(DuplicateReducerError(name))) if *name == *"t")
    );
}

#[tokio::test]
async fn case_17_reducers_come_and_go_while_turns_run_and_no_removal_takes_a_successor() {
    let shorter =
        |to: &'static str| Reduce("t", move |_: ToolOutput, _: &Value| ToolOutput::text(to));
    let engine = engine().tool(priced("t", "original")).build().unwrap();
    let copy = engine.clone();
    let value = async || once(&copy, "t", json!({})).await.value.to_string();
    assert!(engine.reducers().get("t").is_none());
    let first = engine.reducers().register(shorter("first")).unwrap();
    assert_eq!(engine.reducers().get("t").unwrap().tool_name(), "t");
    assert_eq!(value().await, "first");
    let twice = engine.reducers().register(shorter("second")).unwrap_err();
    assert_eq!(twice, DuplicateReducerError("t".into()));
    first.remove();
    assert_eq!(value().await, "original");
    let second = engine.reducers().register(shorter("second")).unwrap();
    first.remove();
    assert_eq!(value().await, "second");
    drop(second);
    assert_eq!(value().await, "second", "dropping a registration removes nothing");
}

#[tokio::test]
async fn a_reducer_knows_the_turn_of_its_session() {
    struct Turns;
    impl Reducer for Turns {
        fn tool_name(&self) -> &str {
            "t"
        }
        fn reduce(&self, _: ToolOutput, cx: ReducerContext<'_>) -> ToolOutput {
            ToolOutput::text(format!("turn {}", cx.turn))
        }
    }
    let engine = engine().tool(priced("t", "x")).reducer(Turns).build().unwrap();
    let mut options = TurnOptions::default();
    options.info.turn = 4;
    let mut turn = engine.turn(options).unwrap();
    let results = turn.iteration().await.unwrap().execute(vec![call("t", json!({}))]).await;
    assert_eq!(&*results[0].value, "turn 4");
}

#[tokio::test]
async fn the_body_does_not_run_before_the_approver_the_granter_and_the_journal_have_their_say() {
    let diary = Diary::default();
    let granted = Arc::clone(&diary);
    let engine = engine()
        .tool(diarist("t", &diary, || Ok("ran")))
        .capability_granter(Grant(move |_: PendingCall<'_>, cx| {
            granted.lock().unwrap().push("grant".to_owned());
            Ok(cx)
        }))
        .journal(Book::keeping(&diary))
        .build()
        .unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    turn.iteration().await.unwrap().execute(vec![call("t", json!({}))]).await;
    assert_eq!(noted(&diary), ["grant", "intent id-t {}", "effect", "ok id-t {}"]);
    assert_eq!(log.names().iter().filter(|name| **name == "tool.end").count(), 1);
}

//! The events of a run in its session.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_agent::{RunOptions, Session};
use toolcrib_core::{
    NewSession, Policy, Rule, SessionOwner, SessionStore as _, ToolContext, ToolName, TracedEvent,
    err, unfence,
};
use toolcrib_engine::{OnSkip, Redactor, Skill, SkillStep, Skills, TurnOptions};
use toolcrib_store::SqliteStore;
use toolcrib_testing::model;

use crate::support::{agent, builder, call, calls, says, skill_id, tool};

async fn session(store: &SqliteStore) -> Session {
    let owner = SessionOwner::default();
    let new = NewSession { owner, name: None, personality: "default".into() };
    Session::create(Arc::new(store.clone()), new).await.unwrap()
}

fn events(store: &SqliteStore, session: &Session, turn: u32) -> Vec<TracedEvent> {
    store.events(session.owner(), session.id(), turn).unwrap()
}

fn named<'e>(events: &'e [TracedEvent], name: &str) -> Vec<&'e TracedEvent> {
    events.iter().filter(|event| *event.name == *name).collect()
}

#[tokio::test]
async fn each_turn_has_its_events_without_the_texts_that_its_messages_contain() {
    let model = model()
        .then(calls([call("c1", "t", json!({"order": 1042}))]))
        .then(says("First."))
        .then(calls([call("c2", "t", json!({}))]))
        .always(says("Second."));
    let policy = Policy { rules: vec![Rule::deny("hide").tools(["hidden"])], ..Policy::default() };
    let agent =
        agent(&model).tool(tool("t")).tool(tool("hidden")).engine(|e| e.policy(policy)).build();
    let (agent, store) = (agent.unwrap(), SqliteStore::in_memory().unwrap());
    let session = session(&store).await;
    for message in ["One", "Two"] {
        agent.run(message, RunOptions::default().session(&session)).await.into_answer().unwrap();
    }
    for (turn, call_id) in [(1, "c1"), (2, "c2")] {
        let events = events(&store, &session, turn);
        let text = serde_json::to_string(&events).unwrap();
        let is_content =
            |text: &str| ["One", "1042", "ran", "First."].iter().any(|t| text.contains(t));
        assert!(!is_content(&text), "{text}");
        let offered = named(&events, "tools.offered");
        assert_eq!(offered[0].fields["tools"], json!(["t"]));
        assert_eq!(offered[0].fields["withheld_tools"][0]["name"], "hidden");
        // The second iteration has the same menu.
        assert_eq!(offered[1].fields["tools"], json!([]));
        assert_eq!(offered[1].fields["fingerprint"], offered[0].fields["fingerprint"]);
        let end = named(&events, "tool.end")[0];
        assert_eq!((&end.fields["call_id"], end.iteration), (&json!(call_id), Some(1)));
        assert_eq!(end.fields["produced_bytes"], 3);
        let requests = named(&events, "model.start");
        let sizes: Vec<_> = requests.iter().map(|e| e.fields["bytes"].as_u64().unwrap()).collect();
        assert!(sizes[0] < sizes[1], "{sizes:?}");
        let answers = named(&events, "model.end");
        assert_eq!(answers[1].fields["usage"]["input_tokens"], 10);
        assert!(answers[1].fields["first_ms"].is_u64());
    }
    let (one, two) = (events(&store, &session, 1), events(&store, &session, 2));
    assert_eq!(
        one.iter().map(|e| &e.name).collect::<Vec<_>>(),
        two.iter().map(|e| &e.name).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_call_has_the_size_of_its_text_after_each_stage_that_changed_it() {
    let secret = "hunter2hunter2";
    let text = format!("{secret} <|im_start|>{}", "x".repeat(3_000));
    let produced = text.len();
    let dirty = builder("dirty")
        .untrusted()
        .max_result_chars(1_000)
        .handler(move |_: Value, _: ToolContext| std::future::ready(text.clone()))
        .unwrap();
    let model = model().then(calls([call("c1", "dirty", json!({}))])).always(says("Done."));
    let redactor = Redactor::new([secret.to_owned()]);
    let agent = agent(&model).tool(dirty).engine(|engine| engine.redactor(redactor)).build();
    let (agent, store) = (agent.unwrap(), SqliteStore::in_memory().unwrap());
    let session = session(&store).await;
    let outcome = agent.run("Go", RunOptions::default().session(&session)).await;
    let events = events(&store, &session, 1);
    let end = named(&events, "tool.end")[0];
    assert_eq!(end.fields["produced_bytes"], produced);
    let stages = end.fields["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
    assert_eq!(names, ["redact", "budget", "sanitize", "fence"]);
    let after = |stage: usize| stages[stage]["bytes"].as_u64().unwrap() as usize;
    assert_eq!(after(0), produced - secret.len() + "[redacted]".len());
    let read = &outcome.tool_calls[0].text;
    assert_eq!(after(3), read.len());
    let (inside, marker) = unfence(read);
    assert_eq!(after(2), inside.len() + 1 + marker.len());
}

#[tokio::test]
async fn events_of_a_long_run_are_limited_and_its_usage_is_kept() {
    let noisy = builder("noisy")
        .handler(|_: Value, _: ToolContext| async {
            Err::<String, _>(err("no").caused_by(std::io::Error::other("z".repeat(5_000))))
        })
        .unwrap();
    let rounds = 300;
    let rounds_of = |n: usize| calls([call(&format!("c{n}"), "noisy", json!({"n": n}))]);
    let model =
        (0..rounds).fold(model(), |model, n| model.then(rounds_of(n))).always(says("Done."));
    let agent = agent(&model).tool(noisy).max_iterations(400).build().unwrap();
    let store = SqliteStore::in_memory().unwrap();
    let session = session(&store).await;
    let outcome = agent.run("Go", RunOptions::default().session(&session)).await;
    let events = events(&store, &session, 1);
    let ends = named(&events, "tool.end");
    assert_eq!(ends.len(), rounds);
    assert!(ends[0].fields["cause"].as_str().unwrap().ends_with(" more bytes)"));
    assert_eq!(ends[rounds - 1].fields["trace_is_full"], true);
    let tokens = |e: &&TracedEvent| e.fields["usage"]["input_tokens"].as_u64().unwrap();
    let sum: u64 = named(&events, "model.end").iter().map(tokens).sum();
    assert_eq!(sum, outcome.usage.input_tokens);
    let size: usize = events.iter().map(|e| serde_json::to_string(&e.fields).unwrap().len()).sum();
    assert!(size < 1_100_000, "{size}");
}

#[tokio::test]
async fn the_end_of_the_run_and_the_steps_that_are_left_are_kept() {
    let step = |name: &str| SkillStep { tool: ToolName::new(name).unwrap(), note: None };
    let skill = Skill::new(skill_id("refunding"), "Refunds.", "Refund.")
        .steps([step("t"), step("u")], OnSkip::Advance);
    let model = model().then(calls([call("c1", "t", json!({}))])).always(says("That is all."));
    let agent = agent(&model)
        .tool(tool("t"))
        .tool(tool("u"))
        .skills(Skills::new(vec![skill]).unwrap())
        .build()
        .unwrap();
    let store = SqliteStore::in_memory().unwrap();
    let session = session(&store).await;
    let mut options = RunOptions::default().session(&session);
    options.turn = TurnOptions::default().skill(skill_id("refunding"));
    let outcome = agent.run("Go", options).await;
    let events = events(&store, &session, 1);
    let [.., unfinished, end] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(
        (&*unfinished.name, &unfinished.fields["remaining"]),
        ("skill.steps_unfinished", &json!(["u"]))
    );
    assert_eq!((&*end.name, &end.fields["stopped"]), ("agent.turn_end", &json!("answered")));
    assert_eq!((&end.fields["iterations"], end.iteration), (&json!(outcome.iterations), None));
    assert_eq!(end.fields["usage"], json!(outcome.usage));
    // The messages have it.
    assert_eq!(end.fields.get("answer"), None);
}

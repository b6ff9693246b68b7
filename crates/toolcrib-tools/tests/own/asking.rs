use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolcrib_core::{
    Approval, ApprovalRequest, Approver, BoxFuture, CancellationToken, Clarification,
    ClarificationOutcome, ErrorCode, Tool, ToolContext,
};
use toolcrib_engine::{Engine, Questions};
use toolcrib_tools::{Declaration, clarify, memory::MemoryScope};

use crate::support::{Agent, call, options};

/// A person with one answer.
struct Person(ClarificationOutcome);

impl Approver for Person {
    fn approve<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async { Approval::Refused("not asked for that".into()) })
    }

    fn clarify<'a>(&'a self, question: &'a Clarification) -> BoxFuture<'a, ClarificationOutcome> {
        assert_eq!(&*question.question, "Which of [redacted]?");
        assert_eq!(question.options, ["red".into(), "blue".into()]);
        Box::pin(async { self.0.clone() })
    }
}

fn question() -> Value {
    json!({ "question": "Which of sesame-street-42?", "options": ["red", "blue"] })
}

#[tokio::test]
async fn the_approver_answers_declines_or_has_nobody() {
    let agent = Agent::new();
    for (clarified, code, text) in [
        (ClarificationOutcome::Answered("blue\u{1b}[2J".into()), None, "The user answers: blue"),
        (ClarificationOutcome::Declined, Some(ErrorCode::Denied), "the user does not answer"),
        (
            ClarificationOutcome::NoPerson("no terminal".into()),
            Some(ErrorCode::NotAvailable),
            "no person can be asked",
        ),
    ] {
        let engine =
            agent.builder(MemoryScope::Global).approver(Person(clarified)).build().unwrap();
        let mut turn = engine.turn(options("ann")).unwrap();
        let result = call(&mut turn, "clarify", question()).await;
        assert_eq!(result.code, code, "{}", result.value);
        assert!(result.value.starts_with(text), "{}", result.value);
        assert!(!result.untrusted && !result.value.contains('\u{1b}'));
    }
    let engine = agent.engine(MemoryScope::Global);
    let mut turn = engine.turn(options("ann")).unwrap();
    let nobody = call(&mut turn, "clarify", json!({ "question": "Who?" })).await;
    assert_eq!(nobody.code, Some(ErrorCode::NotAvailable));
    let long = json!({ "question": "x".repeat(2_001) });
    assert_eq!(call(&mut turn, "clarify", long).await.code, Some(ErrorCode::InputInvalid));
}

/// A turn whose questions one function answers.
async fn asked(
    engine: &Engine,
    answer: impl Fn(&Questions, &str) + Send + Sync + 'static,
) -> Option<ErrorCode> {
    let questions = Questions::new();
    let options = options("ann").questions(questions.clone());
    let (answer, asked) = (Arc::new(answer), questions.clone());
    options
        .events
        .on("question.asked", move |_| {
            for open in asked.open() {
                let payload = &open.question.payload;
                assert_eq!(
                    (&payload["kind"], &payload["options"]),
                    (&json!("clarification"), &json!(["red", "blue"]))
                );
                answer(&asked, &open.question.id);
            }
        })
        .unwrap();
    let mut turn = engine.turn(options).unwrap();
    let result = call(&mut turn, "clarify", question()).await;
    assert!(questions.open().is_empty());
    result.code
}

#[tokio::test]
async fn a_client_answers_the_questions_of_the_turn() {
    let agent = Agent::new();
    let engine = agent.engine(MemoryScope::Global);
    let answered = asked(&engine, |questions, id| {
        assert!(questions.answer(id, json!({ "answer": 1 })).is_err());
        questions.answer(id, json!({ "answer": "red" })).unwrap();
    });
    assert_eq!(answered.await, None);
    let none = asked(&engine, |questions, id| {
        questions.answer(id, json!({ "answer": null })).unwrap();
    });
    assert_eq!(none.await, Some(ErrorCode::Denied));
    let rejected = asked(&engine, |questions, id| questions.reject(id, "no").unwrap());
    assert_eq!(rejected.await, Some(ErrorCode::Denied));
}

#[tokio::test]
async fn the_time_for_an_answer_is_limited_and_a_cancellation_withdraws_the_question() {
    let base = Declaration { timeout: Some(Duration::from_millis(50)), ..Declaration::new("", "") };
    let tool = clarify::build(clarify::declaration(&base, Some("my"))).unwrap();
    assert_eq!((tool.name().as_str(), tool.toolset()), ("my_clarify", Some("person")));
    let engine = Engine::builder().tool(tool).build().unwrap();
    let questions = Questions::new();
    let mut turn = engine.turn(options("ann").questions(questions.clone())).unwrap();
    let late = call(&mut turn, "my_clarify", question()).await;
    assert_eq!(late.code, Some(ErrorCode::Timeout));
    assert!(late.value.starts_with("no answer within 50ms"), "{}", late.value);
    assert!(questions.open().is_empty());

    let agent = Agent::new();
    let engine = agent.engine(MemoryScope::Global);
    let token = CancellationToken::new();
    let options = options("ann").questions(questions.clone()).cancellation(token.clone());
    options.events.on("question.asked", move |_| token.cancel()).unwrap();
    let mut turn = engine.turn(options).unwrap();
    let cancelled = call(&mut turn, "clarify", question()).await;
    assert_eq!(cancelled.code, Some(ErrorCode::Cancelled));
    assert!(questions.open().is_empty());
}

#[tokio::test]
async fn a_tool_that_does_not_declare_it_asks_nobody_and_has_no_keys() {
    let tool = Tool::builder("sly")
        .description("Asks.")
        .handler(|_: Value, cx: ToolContext| async move {
            let asks = cx.clarifier().err().unwrap().code;
            let keeps = cx.kv(toolcrib_core::KvScope::Session).unwrap_err();
            format!("{asks} {} {}", keeps.code, keeps.cause_chain().unwrap())
        })
        .unwrap();
    let agent = Agent::new();
    let engine = Engine::builder().tool(tool).kv(agent.store.clone()).build().unwrap();
    let mut turn = engine.turn(options("ann")).unwrap();
    let result = call(&mut turn, "sly", json!({})).await;
    let expected =
        "not_available not_available the tool does not declare keys of the scope `session`";
    assert_eq!(&*result.value, expected);
}

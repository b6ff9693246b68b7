//! Answers that are JSON of a schema.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_agent::{Agent, AnswerSchema, EndReason, RunError, RunOptions, Session};
use toolcrib_core::{Message, NewSession, SessionOwner};
use toolcrib_models::ScriptedModel;
use toolcrib_store::SqliteStore;
use toolcrib_testing::tool;

const SCRIPT: &str = r#"
    [[rule]]
    user = "not valid: it is not one JSON value"
    text = '{"order": "1042"}'
    [[rule]]
    user = "not valid: .*integer"
    text = "```json\n{\"order\": 1042}\n```"
    [[rule]]
    user = "stubborn"
    text = "{}"
    [[rule]]
    user = "not valid"
    text = "{}"
    [[rule]]
    called = "find_order"
    text = "It is {{ result_texts.find_order }}."
    [[rule]]
    user = "JSON Schema:\n.*\"order\""
    calls = [{ tool = "find_order", args = {} }]
"#;

fn agent() -> Agent {
    let model = ScriptedModel::from_toml("script.toml", SCRIPT).unwrap();
    Agent::builder().model(model).tool(tool("find_order").says("1042").tool()).build().unwrap()
}

fn schema() -> AnswerSchema {
    let order = json!({ "order": { "type": "integer" } });
    let schema = json!({ "type": "object", "properties": order, "required": ["order"] });
    AnswerSchema::new(schema).unwrap()
}

fn users(messages: &[Message]) -> Vec<&str> {
    messages
        .iter()
        .filter_map(|message| match message {
            Message::User { text, .. } => Some(&**text),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn an_answer_is_requested_again_until_it_is_valid() {
    let answer = agent().run_structured("which?", RunOptions::default(), &schema()).await;
    assert_eq!(answer.value, Some(json!({ "order": 1042 })));
    let outcome = answer.outcome;
    assert_eq!(outcome.end_reason, EndReason::Answered);
    // The first turn called a tool, two more corrected its answer.
    assert_eq!((outcome.tool_calls.len(), outcome.iterations), (1, 4));
    let said = users(&outcome.messages);
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[1].contains("not one JSON value") && said[2].contains("`order`"), "{said:?}");
    // The problem names the field, not the value.
    assert!(!said[2].contains("1042"), "{said:?}");
    assert!(outcome.usage.input_tokens > 0);
}

#[tokio::test]
async fn the_attempts_are_limited_and_the_error_says_so() {
    for (attempts, turns) in [(0, 1), (1, 1), (2, 2)] {
        let schema = schema().attempts(attempts);
        let answer = agent().run_structured("stubborn", RunOptions::default(), &schema).await;
        assert_eq!((answer.value, users(&answer.outcome.messages).len()), (None, turns));
        let error = answer.outcome.into_answer().unwrap_err();
        assert_eq!(error.code, RunError::ANSWER_INVALID);
        let told = format!("no answer of {turns} was valid");
        assert!(error.message.starts_with(&told) && error.message.contains("`order`"), "{error}");
    }
}

#[tokio::test]
async fn a_check_adds_what_a_schema_cannot_say_and_a_failed_run_stays_one() {
    let even = |value: &Value| match value["order"].as_u64() {
        Some(order) if order.is_multiple_of(2) => Ok(()),
        _ => Err("`order` must be even".to_owned()),
    };
    let answer =
        agent().run_structured("which?", RunOptions::default(), &schema().check(even)).await;
    assert_eq!(answer.value, Some(json!({ "order": 1042 })));

    let model =
        ScriptedModel::from_toml("script.toml", "[[rule]]\nuser = 'never'\ntext = 'x'").unwrap();
    let failing = Agent::builder().model(model).build().unwrap();
    let answer = failing.run_structured("which?", RunOptions::default(), &schema()).await;
    assert_eq!(answer.outcome.error.unwrap().code, RunError::MODEL_FAILED);
    assert!(AnswerSchema::new(json!({ "type": "nonsense" })).is_err());
}

#[tokio::test]
async fn corrections_are_turns_of_the_session() {
    let owner = SessionOwner::default();
    let new = NewSession { owner, name: None, personality: "default".into() };
    let session = Session::create(Arc::new(SqliteStore::in_memory().unwrap()), new).await.unwrap();
    let options = RunOptions::default().session(&session);
    let answer = agent().run_structured("which?", options, &schema()).await;
    assert_eq!(answer.value, Some(json!({ "order": 1042 })), "{:?}", answer.outcome.error);
    assert_eq!(session.info().await.unwrap().turns, 3);
    session.close().await.unwrap();
}

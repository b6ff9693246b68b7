//! Models as code.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use serde_json::json;
use toolcrib_agent::{EndReason, RunOptions};
use toolcrib_core::{
    Arguments, CancellationToken, Message, Model, ModelChunk, ModelErrorClass, ModelRequest,
    ModelResponse, ToolCall, ToolChoice, Usage,
};
use toolcrib_engine::TurnOptions;
use toolcrib_testing::{Answer, TestModel, call, model, paused, results, tool};

use crate::support::{agent, failure};

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        system: "".into(),
        messages: Arc::new(messages),
        menu: Arc::default(),
        tool_choice: ToolChoice::Auto,
        sent_parts: None,
    }
}

/// All streamed pieces of a model, errors as texts.
fn streamed(model: &TestModel) -> Vec<Result<ModelChunk, String>> {
    let stream = Arc::new(model.clone()).respond(request(vec![Message::user("Hi")]));
    paused(stream.map(|chunk| chunk.map_err(|error| error.to_string())).collect())
}

fn texts(chunks: &[Result<ModelChunk, String>]) -> Vec<&str> {
    let texts = chunks.iter().filter_map(|chunk| match chunk {
        Ok(ModelChunk::Text(text)) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn done(chunks: &[Result<ModelChunk, String>]) -> &ModelResponse {
    match chunks.last() {
        Some(Ok(ModelChunk::Done(response))) => response,
        other => panic!("{other:?}"),
    }
}

#[test]
fn steps_are_taken_in_order_and_what_was_asked_is_kept() {
    let model = model()
        .named("test:desk")
        .then([call("a", json!({})), call("b", json!({ "x": 1 }))])
        .then(Answer::text("Again.").and_calls([call("a", json!({}))]))
        .then_with(|request| format!("{:?}", results(request)));
    let (a, b) = (tool("a").says("one"), tool("b").says("two"));
    let agent = agent(&model).tools([a.tool(), b.tool()]).build().unwrap();
    assert_eq!(model.steps_left(), 3);
    let outcome = paused(agent.run("Go", RunOptions::default()));
    assert_eq!(outcome.answer.as_deref(), Some(r#"[("a", "one"), ("b", "two"), ("a", "one")]"#));
    assert_eq!((a.calls().len(), b.calls()), (2, vec![json!({ "x": 1 })]));
    let ids: Vec<_> = outcome.tool_calls.iter().map(|call| &*call.call_id).collect();
    assert_eq!(ids, ["call_1", "call_2", "call_3"]);
    let asked = model.requests();
    assert_eq!(asked.iter().map(|asked| asked.messages.len()).collect::<Vec<_>>(), [1, 4, 6]);
    assert_eq!(asked[0].menu.len(), 2);
    model.assert_used_up();
}

#[test]
fn results_are_those_since_the_user_spoke_last() {
    let result = |name: &str| crate::support::result("c", name, "text");
    let before = vec![Message::user("One"), result("old"), Message::user("Two")];
    assert!(results(&request(before.clone())).is_empty());
    let after = request([before, vec![result("new")]].concat());
    assert_eq!(results(&after), [("new", "text")]);
}

#[test]
fn a_text_arrives_word_by_word_and_ends_in_the_whole_answer() {
    let usage = Usage { input_tokens: 7, cost_usd: Some(0.5), ..Usage::default() };
    let chunks = streamed(&model().then(Answer::text("All is  well.").usage(usage)));
    assert_eq!(texts(&chunks), ["All ", "is ", " ", "well."]);
    assert_eq!(done(&chunks).text, "All is  well.");
    assert_eq!(done(&chunks).usage, usage);
    assert_eq!(done(&streamed(&model().then(ModelResponse::default()))).text, "");
}

#[test]
fn ids_are_given_where_they_are_missing_unless_they_are_to_be_kept() {
    let calls = [call("a", json!({})), ToolCall::new("mine", "b", json!({})), call("c", json!({}))];
    let ids = |answer: Answer| -> Vec<String> {
        let chunks = streamed(&model().then(answer));
        done(&chunks).calls.iter().map(|call| call.id.to_string()).collect()
    };
    assert_eq!(ids(Answer::calls(calls.clone())), ["call_1", "mine", "call_3"]);
    assert_eq!(ids(Answer::calls(calls).keep_ids()), ["", "mine", ""]);
    assert_eq!(call("a", json!({})).arguments, Arguments::Json(json!({})));
}

#[test]
fn an_answer_ends_as_it_is_told_to() {
    let class = ModelErrorClass::Incomplete;
    let chunks = streamed(&model().then(Answer::text("We are").fails(class, "overloaded")));
    assert_eq!(texts(&chunks), ["We ", "are"]);
    assert_eq!(chunks.last(), Some(&Err("overloaded".to_owned())));
    let chunks = streamed(&model().then(Answer::text("We").breaks_off()));
    assert_eq!(chunks, [Ok(ModelChunk::Text("We".into()))]);
    let panicking = model().then(Answer::text("We").panics("bug in a model"));
    assert_eq!(failure(|| streamed(&panicking)), "bug in a model");
    let outcome = paused(async {
        let stalling = model().then(Answer::text("We").stalls());
        let agent = agent(&stalling).turn_timeout(Duration::from_secs(9)).build().unwrap();
        let outcome = agent.run("Go", RunOptions::default()).await;
        (outcome, stalling.streaming())
    });
    assert_eq!((outcome.0.end_reason, outcome.1), (EndReason::Timeout, 0));
}

#[test]
fn a_script_that_is_asked_too_often_says_so_to_the_run_and_to_the_test() {
    let model = model().then(call("t", json!({})));
    let agent = agent(&model).tool(tool("t").says("a\nresult").tool()).build().unwrap();
    let outcome = paused(agent.run("Go", RunOptions::default()));
    assert_eq!(outcome.end_reason, EndReason::Failed);
    assert_eq!(
        outcome.error.unwrap().message,
        "model `test:model`: the script has no step left of its 1; it was asked with 3 messages, \
         the last the result of `t` \"a\\nresult\", and 1 tools"
    );
    let text = failure(|| model.assert_used_up());
    assert!(text.contains("it has 1 steps and received 1 more requests; it was asked:"), "{text}");
    assert!(text.contains("- with 1 messages, the last the user's \"Go\", and 1 tools"), "{text}");
}

#[test]
fn a_script_that_is_not_used_up_says_what_is_left() {
    let model = model().then("One.").then("Two.");
    assert_eq!(
        failure(|| model.assert_used_up()),
        "the script of `test:model` was not used up: 2 of 2 steps were not taken; \
         it was asked:\n- nothing"
    );
    let agent = agent(&model).build().unwrap();
    paused(agent.run("Go", RunOptions::default()));
    let text = failure(|| model.assert_used_up());
    assert!(text.contains("1 of 2 steps were not taken"), "{text}");
    paused(agent.run("Go", RunOptions::default()));
    model.assert_used_up();
}

#[test]
fn what_comes_after_the_steps_is_answered_alike_for_many_runs_at_once() {
    let model = model().then("First.").always_with(|request| match results(request).len() {
        0 => Answer::from(call("t", json!({}))),
        _ => "Done.".into(),
    });
    let agent = agent(&model).tool(tool("t").tool()).build().unwrap();
    let first = paused(agent.run("Go", RunOptions::default()));
    assert_eq!(first.answer.as_deref(), Some("First."));
    let answers = paused(async {
        let runs = (0..50).map(|_| agent.run("Go", RunOptions::default()).into_future());
        futures_util::future::join_all(runs).await
    });
    assert!(answers.iter().all(|outcome| outcome.answer.as_deref() == Some("Done.")));
    assert_eq!(model.requests().len(), 101);
    model.assert_used_up();
    assert_eq!(done(&streamed(&toolcrib_testing::model().always("Same."))).text, "Same.");
}

#[test]
fn a_panic_in_a_step_fails_the_run() {
    let model = model().then_with(|request| {
        assert_eq!(request.messages.len(), 7, "of seven messages");
        "never"
    });
    let outcome = paused(agent(&model).build().unwrap().run("Go", RunOptions::default()));
    assert_eq!(outcome.end_reason, EndReason::Failed);
    assert!(outcome.error.unwrap().message.contains("of seven messages"));
    assert_eq!((model.requests().len(), model.streaming()), (1, 0));
}

#[test]
fn slowness_is_the_models_unless_an_answer_has_its_own_and_cancellation_ends_it() {
    paused(async {
        let model = model()
            .then("two words")
            .then(Answer::text("two words").slowly(Duration::from_secs(60)))
            .slowly(Duration::from_secs(1));
        let agent = agent(&model).build().unwrap();
        let clock = tokio::time::Instant::now();
        agent.run("Go", RunOptions::default()).await;
        assert_eq!(clock.elapsed().as_secs(), 3);
        let cancel = CancellationToken::new();
        let run = agent.run("Go", TurnOptions::default().cancellation(cancel.clone()));
        let watched = model.clone();
        run.on("model.text", move |_| {
            assert_eq!(watched.streaming(), 1);
            cancel.cancel();
        })
        .unwrap();
        assert_eq!(run.await.end_reason, EndReason::Cancelled);
        assert_eq!((clock.elapsed().as_secs(), model.streaming()), (63, 0));
    });
}

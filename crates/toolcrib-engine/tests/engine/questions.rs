//! Questions to people: asked in an iteration or of a call, answered, and closed on every way out.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolcrib_core::{Approval, CancellationToken, Effect, ErrorCode, ToolResult, call_approver};
use toolcrib_engine::{
    AnswerError, Engine, ExecutorResult, IterationContext, NotAnsweredError, OpenQuestion,
    Question, Questions, Redactor, TurnOptions, TurnRunner,
};

use crate::support::{Log, call, engine, in_time, policy, rule_on, says, tool};

/// The events and outcome of a turn that asks one question.
async fn asks(
    question: Question,
    options: TurnOptions,
    answers: impl FnOnce(&Questions, &Arc<str>) + Send + 'static,
) -> (Result<Value, NotAnsweredError>, Log) {
    let questions = Questions::new();
    let options = options.questions(questions.clone());
    let log = Log::of(&options.events);
    let id = Arc::clone(&question.id);
    let (answered, people) = (std::sync::Mutex::new(None), questions.clone());
    let answers = std::sync::Mutex::new(Some(answers));
    options
        .events
        .on("question.asked", move |_| {
            let answers = answers.lock().unwrap().take();
            answers.unwrap()(&people, &id);
        })
        .unwrap();
    let runner = TurnRunner::new(engine().build().unwrap());
    let ran = runner.run(options, |cx: IterationContext| {
        let (question, answered) = (question.clone(), &answered);
        async move {
            let answer = cx.wait_for(question).await;
            *answered.lock().unwrap() = Some(answer);
            Ok(cx.ack()?)
        }
    });
    in_time(ran).await.unwrap();
    assert!(questions.open().is_empty());
    let answer = answered.lock().unwrap().take().unwrap();
    (answer, log)
}

fn closed(log: &Log) -> Vec<Value> {
    log.of_name("question.closed").iter().map(|closed| closed["result"].clone()).collect()
}

fn limit() -> Question {
    Question::new("How much at most?").answer_schema(json!({
        "type": "object",
        "properties": { "cents": { "type": "integer" } },
        "required": ["cents"],
        "additionalProperties": false,
    }))
}

// Case 71.
#[tokio::test]
async fn an_answer_that_does_not_fit_goes_back_to_who_gave_it_and_the_question_stays_open() {
    let (answer, log) = asks(limit(), TurnOptions::default(), |people, id| {
        for (bad, problem) in [
            (json!({ "cents": "hunter2" }), "`cents`: expected an integer, received a string"),
            (json!({}), "`cents`: it is required"),
            (json!({ "cents": 1, "euros": 2 }), "`euros`: there is no such field"),
        ] {
            let Err(error) = people.answer(id, bad) else { panic!("it fits") };
            assert_eq!(
                error.to_string(),
                format!("the answer to question `{id}` does not match its schema: {problem}; answer again")
            );
            assert_eq!(people.open().len(), 1);
        }
        people.answer(id, json!({ "cents": 500 })).unwrap();
        let again = people.answer(id, json!({ "cents": 900 }));
        assert_eq!(again, Err(AnswerError::NotOpen { id: Arc::clone(id) }));
    })
    .await;
    assert_eq!(answer, Ok(json!({ "cents": 500 })));
    assert_eq!(closed(&log), ["answered"]);
}

// Case 72.
#[tokio::test(start_paused = true)]
async fn rejected_aborted_cancelled_and_too_late_are_told_apart() {
    let (answer, log) = asks(limit(), TurnOptions::default(), |people, id| {
        people.reject(id, "not my budget").unwrap();
    })
    .await;
    assert_eq!(answer, Err(NotAnsweredError::Rejected { reason: "not my budget".into() }));
    assert_eq!(closed(&log), ["rejected"]);

    let taken_back = |people: &Questions, id: &Arc<str>| people.abort(id).unwrap();
    let (answer, log) = asks(limit(), TurnOptions::default(), taken_back).await;
    assert_eq!(answer, Err(NotAnsweredError::Aborted));
    assert_eq!(closed(&log), ["aborted"]);

    let cancellation = CancellationToken::new();
    let options = TurnOptions::default().cancellation(cancellation.clone());
    let (answer, log) = asks(limit(), options, move |_, _| cancellation.cancel()).await;
    assert_eq!(answer, Err(NotAnsweredError::Aborted));
    assert_eq!(closed(&log), ["aborted"]);

    let timeout = Duration::from_secs(20);
    let (answer, log) = asks(limit().timeout(timeout), TurnOptions::default(), |_, _| {}).await;
    assert_eq!(answer, Err(NotAnsweredError::TimedOut { timeout }));
    assert_eq!(closed(&log), ["timed_out"]);
    let late = Questions::new().answer("gone", json!(1)).unwrap_err();
    assert_eq!(late.to_string(), "there is no open question `gone`");
}

#[tokio::test]
async fn a_question_is_data_without_secrets() {
    let questions = Questions::new();
    let options = TurnOptions::default().questions(questions.clone());
    let log = Log::of(&options.events);
    let engine = engine().redactor(Redactor::new(["hunter22".to_owned()])).build().unwrap();
    let runner = TurnRunner::new(engine);
    let question = limit()
        .id("limit-1")
        .payload(json!({ "account": "hunter22" }))
        .timeout(Duration::from_secs(60));
    let people = questions.clone();
    options
        .events
        .on("question.asked", move |_| {
            let open = people.open().remove(0);
            let text = serde_json::to_string(&open).unwrap();
            assert_eq!(serde_json::from_str::<OpenQuestion>(&text).unwrap(), open);
            assert_eq!(open.question.payload, json!({ "account": "[redacted]" }));
            assert_eq!((open.iteration, open.question.timeout_ms), (1, Some(60_000)));
            assert!(open.asked_at_ms > 1_600_000_000_000);
            people.answer("limit-1", json!({ "cents": 1 })).unwrap();
        })
        .unwrap();
    let outcome = runner
        .run(options, |cx: IterationContext| {
            let question = question.clone();
            async move {
                cx.wait_for(question).await?;
                Ok(cx.ack()?)
            }
        })
        .await
        .unwrap();
    assert_eq!(outcome.end.as_str(), "acked");
    let asked = &log.of_name("question.asked")[0];
    assert_eq!(asked["id"], "limit-1");
    assert_eq!(asked["reason"], "How much at most?");
    assert_eq!(asked["payload"], json!({ "account": "[redacted]" }));
    assert_eq!(asked["timeout_ms"], 60_000);
    assert!(asked["answer_schema"].is_object());
    // A host's stored question only requires its id and its reason.
    let plain: Question = serde_json::from_value(json!({ "id": "q", "reason": "Go?" })).unwrap();
    assert_eq!(plain, Question::new("Go?").id("q"));
}

#[tokio::test]
async fn what_cannot_be_asked_is_an_error_of_who_asks() {
    let runner = TurnRunner::new(engine().build().unwrap());
    let executor = |with_people: bool| {
        move |cx: IterationContext| async move {
            let deep = (0..1000).fold(json!(1), |inner, _| json!([inner]));
            let bad = json!({ "type": "nonsense" });
            for question in [limit().payload(deep), Question::new("?").answer_schema(bad)] {
                let answer = cx.wait_for(question).await;
                let nobody = matches!(answer, Err(NotAnsweredError::NoQuestions));
                let invalid = matches!(answer, Err(NotAnsweredError::Invalid { .. }));
                assert_eq!((nobody, invalid), (!with_people, with_people), "{answer:?}");
            }
            if with_people {
                // One id is one question, while it is open.
                let first = cx.wait_for(limit().id("one"));
                let second = cx.wait_for(limit().id("one"));
                let both = futures_util::future::select(Box::pin(first), Box::pin(second)).await;
                let futures_util::future::Either::Right((second, first)) = both else {
                    panic!("nobody answers")
                };
                assert!(matches!(second, Err(NotAnsweredError::Invalid { .. })));
                // Dropped, it is closed.
                drop(first);
            }
            let done: ExecutorResult = Ok(cx.ack()?);
            done
        }
    };
    let outcome = runner.run(TurnOptions::default(), executor(false)).await.unwrap();
    assert_eq!(outcome.end.as_str(), "acked");
    let questions = Questions::new();
    let options = TurnOptions::default().questions(questions.clone());
    let log = Log::of(&options.events);
    let outcome = in_time(runner.run(options, executor(true))).await.unwrap();
    assert_eq!(outcome.end.as_str(), "acked");
    assert!(questions.open().is_empty());
    assert_eq!((log.of_name("question.asked").len(), closed(&log)), (1, vec![json!("aborted")]));
}

#[tokio::test]
async fn one_host_answers_many_turns() {
    let questions = Questions::new();
    let runner = TurnRunner::new(engine().build().unwrap());
    let turns = (0..8).map(|n| {
        let (runner, questions) = (runner.clone(), questions.clone());
        tokio::spawn(async move {
            let options = TurnOptions::default().questions(questions);
            let executor = |cx: IterationContext| async move {
                let answer = cx.wait_for(Question::new("?").payload(n)).await?;
                assert_eq!(answer, json!(n * 2));
                Ok(cx.ack()?)
            };
            runner.run(options, executor).await.unwrap().end.as_str()
        })
    });
    let turns = Vec::from_iter(turns);
    in_time(async {
        while questions.open().len() < 8 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for open in questions.open() {
        let n = open.question.payload.as_u64().unwrap();
        questions.answer(&open.question.id, json!(n * 2)).unwrap();
    }
    for turn in turns {
        assert_eq!(in_time(turn).await.unwrap(), "acked");
    }
}

async fn called(
    engine: &Engine,
    answers: fn(&Questions, &OpenQuestion),
) -> (ToolResult, Vec<Value>) {
    let questions = Questions::new();
    let options = TurnOptions::default().questions(questions.clone());
    let log = Log::of(&options.events);
    options
        .events
        .on("question.asked", move |_| {
            for open in questions.open() {
                answers(&questions, &open);
            }
        })
        .unwrap();
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let calls = vec![call("refund", json!({ "order": 1042 }))];
    (in_time(iteration.execute(calls)).await.remove(0), closed(&log))
}

#[tokio::test]
async fn calls_that_a_rule_asks_about_are_questions_where_there_is_no_approver() {
    let asking = || policy([rule_on("rule 1", Effect::Ask, "refund")]);
    let refund = || {
        let schema = json!({ "type": "object", "properties": { "order": { "type": "integer" } } });
        says(crate::support::builder("refund").input_schema(schema), "refunded")
    };
    let engine_ = engine().tool(refund()).policy(asking()).build().unwrap();
    let (result, closed) = called(&engine_, |people, open| {
        let payload = &open.question.payload;
        assert_eq!(&*open.question.reason, "rule 1 asks before `refund` is called");
        assert_eq!(payload["tool"], "refund");
        assert_eq!(payload["args"], json!({ "order": 1042 }));
        assert_eq!(
            (&payload["rule"], &payload["call_id"]),
            (&json!("rule 1"), &json!("id-refund"))
        );
        assert!(people.answer(&open.question.id, json!(true)).is_err());
        people.answer(&open.question.id, json!({ "approve": true })).unwrap();
    })
    .await;
    assert_eq!((&*result.value, closed), ("refunded", vec![json!("answered")]));

    let (result, _) = called(&engine_, |people, open| {
        let no = json!({ "approve": false, "message": "ask on Monday" });
        people.answer(&open.question.id, no).unwrap();
    })
    .await;
    assert_eq!((result.code, &*result.value), (Some(ErrorCode::Denied), "ask on Monday"));

    let (result, closed) = called(&engine_, |people, open| {
        people.reject(&open.question.id, "for the operator").unwrap();
    })
    .await;
    assert_eq!(&*result.value, "calling `refund` was not approved");
    assert_eq!((result.code, closed), (Some(ErrorCode::Denied), vec![json!("rejected")]));

    // An approver decides alone.
    let approves = call_approver(|_| async { Approval::Approved });
    let engine_ = engine().tool(refund()).policy(asking()).approver(approves).build().unwrap();
    let (result, closed) = called(&engine_, |_, _| panic!("no other client is asked")).await;
    assert!(result.is_ok() && closed.is_empty());

    // Without any approver it is denied, as always.
    let engine_ = engine().tool(tool("refund")).policy(asking()).build().unwrap();
    let result = crate::support::once(&engine_, "refund", json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::Denied));
}

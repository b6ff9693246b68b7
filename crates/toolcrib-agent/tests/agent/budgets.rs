//! Prices, and budgets over all runs that share a store.

use std::sync::Arc;

use serde_json::json;
use toolcrib_agent::{
    Agent, AgentBuilder, Allowance, Budget, EndReason, RunError, RunOptions, RunOutcome, Session,
    TurnLimits,
};
use toolcrib_core::{
    CancellationToken, Message, Model, ModelErrorClass, ModelRequest, ModelStream, NewSession,
    Price, PricedModel, SessionOwner, Usage, UsageSource, UsageStore,
};
use toolcrib_engine::{Redactor, TurnOptions};
use toolcrib_store::SqliteStore;
use toolcrib_testing::{Answer, EventRecorder, TestModel, assert_replayable, model};

use crate::support::{USAGE, agent, call, calls, says, tool};

const PRICE: Price =
    Price { input: 10_000.0, cached_input: Some(1_000.0), cache_write: None, output: 100_000.0 };

fn spends(max_cost_usd: f64) -> Allowance {
    Allowance { max_cost_usd: Some(max_cost_usd), max_tokens: None }
}

fn day(max_cost_usd: f64) -> Budget {
    Budget { day: spends(max_cost_usd), ..Budget::default() }
}

/// A model of a vendor that reports tokens alone.
struct Vendor(Arc<TestModel>);

impl Model for Vendor {
    fn name(&self) -> &str {
        "openai:gpt-test"
    }

    fn reports_cost(&self) -> bool {
        false
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        Arc::clone(&self.0).respond(request)
    }
}

fn vendor(model: &TestModel, price: Option<Price>) -> AgentBuilder {
    let vendor: Arc<dyn Model> = Arc::new(Vendor(Arc::new(model.clone())));
    let model = match price {
        Some(price) => Arc::new(PricedModel::new(vendor, price)),
        None => vendor,
    };
    Agent::builder().model(model).engine(|engine| engine.redactor(Redactor::default()))
}

fn counted(store: &SqliteStore) -> RunOptions {
    RunOptions::default().usage_store(Arc::new(store.clone()))
}

fn limit_reached(outcome: &RunOutcome) -> &str {
    assert_eq!(outcome.end_reason, EndReason::LimitReached, "{outcome:?}");
    assert_replayable(&outcome.messages);
    let answer = outcome.answer.clone().unwrap();
    assert!(answer.starts_with("I stopped before I had an answer: the "), "{answer}");
    assert_eq!(outcome.messages.last(), Some(&Message::assistant(answer, [])));
    let error = outcome.error.as_ref().unwrap();
    assert_eq!(error.code, RunError::LIMIT_REACHED);
    &error.message
}

#[test]
fn each_kind_of_token_has_its_price_and_one_without_a_price_has_no_cost() {
    let usage = Usage {
        input_tokens: 1_000,
        cached_input_tokens: 600,
        cache_write_tokens: 300,
        output_tokens: 50,
        cost_usd: None,
    };
    let price =
        Price { input: 3.0, cached_input: Some(0.3), cache_write: Some(3.75), output: 15.0 };
    let cost = price.cost(&usage).unwrap() * 1e6;
    assert!((cost - (100.0 * 3.0 + 600.0 * 0.3 + 300.0 * 3.75 + 50.0 * 15.0)).abs() < 1e-6);
    assert_eq!(Price { cache_write: None, ..price }.cost(&usage), None);
    assert_eq!(Price { cached_input: None, ..price }.cost(&usage), None);
    let plain = Usage { cached_input_tokens: 0, cache_write_tokens: 0, ..usage };
    let bare = Price { cached_input: None, cache_write: None, ..price };
    assert!((bare.cost(&plain).unwrap() * 1e6 - 3_750.0).abs() < 1e-6);
    assert_eq!(price.cost(&Usage::NOTHING), Some(0.0));
    // A report that contradicts itself.
    let odd = Usage { input_tokens: 5, ..usage };
    assert!(price.cost(&odd).unwrap() > 0.0);
}

#[tokio::test]
async fn a_price_gives_a_vendors_responses_a_cost_and_without_one_it_is_unknown() {
    let model = model().always(says("Done."));
    let priced = vendor(&model, Some(PRICE)).build().unwrap();
    let options = RunOptions::default();
    let seen = EventRecorder::attach(&options.turn.events);
    let outcome = priced.run("Go", options).await;
    // 6 plain tokens, 4 cached ones, 2 of output.
    assert_eq!(outcome.usage.cost_usd, Some(0.06 + 0.004 + 0.2));
    let end = seen.json_of("model.end").remove(0);
    assert_eq!(end["usage"]["cost_usd"], 0.264);
    let unpriced = vendor(&model, None).build().unwrap();
    let outcome = unpriced.run("Go", RunOptions::default()).await;
    assert_eq!(outcome.usage.cost_usd, None);
}

#[tokio::test]
async fn a_budget_is_spent_by_all_runs_and_then_no_request_is_made() {
    let store = SqliteStore::in_memory().unwrap();
    let model = model().always(says("Done."));
    let run = async |budget: Budget, who: &str| {
        let agent = agent(&model).budget(budget).build().unwrap();
        let mut options = counted(&store);
        options.turn = TurnOptions::default().principal(who);
        agent.run("Go", options).await
    };
    // Each run costs a quarter.
    for who in ["ann", "bob", "ann"] {
        assert_eq!(run(day(0.7), who).await.end_reason, EndReason::Answered);
    }
    let outcome = run(day(0.7), "cid").await;
    let message = limit_reached(&outcome);
    assert!(message.contains("0.7 US dollars per day of all principals (0.7500"), "{message}");
    assert!(outcome.answer.as_deref().unwrap().contains("I made no calls"), "{outcome:?}");
    assert_eq!((outcome.iterations, outcome.usage), (1, Usage::NOTHING));

    let of_one = Budget { principal: spends(0.3), ..Budget::default() };
    assert_eq!(run(of_one.clone(), "bob").await.end_reason, EndReason::Answered);
    let outcome = run(of_one.clone(), "ann").await;
    assert!(limit_reached(&outcome).contains("0.3 US dollars per day of this principal"));
    assert_eq!(run(of_one, "cid").await.end_reason, EndReason::Answered);

    let tokens = Allowance { max_tokens: Some(24), max_cost_usd: None };
    let of_one = Budget { principal: tokens, ..Budget::default() };
    let outcome = run(of_one, "ann").await;
    assert!(limit_reached(&outcome).contains("24 tokens per day of this principal (24 were used"));
    assert_eq!(model.requests().len(), 5);
}

#[tokio::test]
async fn a_budget_ends_a_run_between_its_requests_with_an_event_and_keeps_its_calls() {
    let store = SqliteStore::in_memory().unwrap();
    let model = model()
        .then(calls([call("c1", "t", json!({"n": 1}))]))
        .then(calls([call("c2", "t", json!({"n": 2}))]))
        .always(says("Done."));
    let agent = agent(&model).tool(tool("t")).budget(day(0.4)).build().unwrap();
    let options = counted(&store);
    let seen = EventRecorder::attach(&options.turn.events);
    let outcome = agent.run("Go", options).await;
    limit_reached(&outcome);
    assert_eq!((outcome.tool_calls.len(), model.requests().len()), (2, 2));
    let event = seen.json_of("agent.limit_reached").remove(0);
    assert_eq!(event["limit"], "budget.day.max_cost_usd");
    assert!(event["message"].as_str().unwrap().contains("a new day begins at 00:00 UTC"));
    assert!(outcome.answer.unwrap().contains("I made 2 calls"));
}

#[tokio::test]
async fn usage_is_summed_up_by_model_and_tool_with_definitions_and_results() {
    let store = SqliteStore::in_memory().unwrap();
    let session_store = Arc::new(store.clone());
    let owner = SessionOwner { tenant: None, principal: Some("ann".into()) };
    let new = NewSession { owner: owner.clone(), name: None, personality: "default".into() };
    let session = Session::create(session_store, new).await.unwrap();
    let model = model().then(calls([call("c1", "t", json!({"n": 1}))])).always(says("Done."));
    let agent = agent(&model).tool(tool("t")).tool(tool("unused")).build().unwrap();
    let mut options = counted(&store).session(&session);
    options.turn = TurnOptions::default().principal("ann");
    let outcome = agent.run("Go", options).await;
    let sums = store.usage_since(0).unwrap();
    assert!(
        sums.iter().all(|one| one.owner == owner && one.session.as_ref() == Some(session.id()))
    );
    let of =
        |source: UsageSource| &sums.iter().find(|one| one.entry.source == source).unwrap().entry;
    let of_model = of(UsageSource::Model(Arc::from(Model::name(&model))));
    assert_eq!((of_model.count, of_model.input_tokens), (2, 2 * USAGE.input_tokens));
    assert_eq!(of_model.cost_usd(), outcome.usage.cost_usd);
    let (used, unused) =
        (of(UsageSource::Tool("t".into())), of(UsageSource::Tool("unused".into())));
    assert_eq!((used.count, used.result_chars), (1, outcome.tool_calls[0].text.len() as u64));
    assert_eq!((unused.count, unused.result_chars), (0, 0));
    // Its definition was sent twice.
    let rendering = model.requests()[0].menu.tools()[1].rendering().len() as u64;
    assert_eq!(unused.definition_bytes, 2 * rendering);
}

#[tokio::test]
async fn money_cannot_be_limited_for_a_model_without_a_price() {
    let model = model().always(says("Done."));
    let limits = TurnLimits { max_cost_usd: Some(1.0), ..TurnLimits::NONE };
    let limited = vendor(&model, None).turn_limits(limits).build().unwrap();
    let budgeted = vendor(&model, None).budget(day(1.0)).build().unwrap();
    let fallback = agent(&model)
        .fallback_model(Arc::new(Vendor(Arc::new(model.clone()))))
        .budget(day(1.0))
        .build()
        .unwrap();
    for agent in [limited, budgeted, fallback] {
        let outcome = agent.run("Go", counted(&SqliteStore::in_memory().unwrap())).await;
        let error = outcome.error.unwrap();
        assert_eq!((outcome.end_reason, error.code), (EndReason::Failed, RunError::COST_UNKNOWN));
        assert!(error.message.contains("`openai:gpt-test` has no price"), "{error}");
    }
    let agent = agent(&model).budget(day(1.0)).build().unwrap();
    let error = agent.run("Go", RunOptions::default()).await.error.unwrap();
    assert!(error.message.contains("a budget requires a store of usage"), "{error}");
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test]
async fn a_cost_that_a_price_lacks_ends_the_run_and_the_days_budget() {
    let written = Usage { cache_write_tokens: 3, ..USAGE };
    let model =
        model().always(Answer::text("One.").usage(written).and_calls([call("", "t", json!({}))]));
    let store = SqliteStore::in_memory().unwrap();
    let agent = || vendor(&model, Some(PRICE)).tool(tool("t"));
    let limits = TurnLimits { max_cost_usd: Some(9.0), ..TurnLimits::NONE };
    let outcome = agent().turn_limits(limits).build().unwrap().run("Go", counted(&store)).await;
    assert!(limit_reached(&outcome).contains("no price for a part of its tokens"));
    assert_eq!((outcome.usage.cost_usd, model.requests().len()), (None, 1));
    let outcome = agent().budget(day(9.0)).build().unwrap().run("Go", counted(&store)).await;
    assert!(limit_reached(&outcome).contains("the cost of 1 requests of today is unknown"));
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_request_that_broke_off_counts_for_budgets_and_has_no_cost() {
    let store = SqliteStore::in_memory().unwrap();
    let stalled = model().always(Answer::text("Much text.").stalls());
    let agent = vendor(&stalled, Some(PRICE)).budget(day(1e6)).build().unwrap();
    let token = CancellationToken::new();
    let mut options = counted(&store);
    options.turn = TurnOptions::default().cancellation(token.clone());
    let run = agent.run("x".repeat(3_000), options);
    run.on("model.text", move |_| token.cancel()).unwrap();
    let outcome = run.await;
    assert_eq!((outcome.end_reason, outcome.usage.cost_usd), (EndReason::Cancelled, None));
    let spent = store.spent_today(None).unwrap();
    // A third of the bytes, at the price of input.
    assert!(spent.tokens >= 1_000 && spent.usd >= 10.0 && spent.unknown_costs == 0, "{spent:?}");
    let entry = store.usage_since(0).unwrap().remove(0).entry;
    assert_eq!((entry.input_tokens, entry.cost_usd(), entry.unknown_costs), (0, None, 1));

    // A refused request costs nothing.
    let refused = model().always(Answer::text("").fails(ModelErrorClass::RateLimit, "later"));
    let agent = vendor(&refused, Some(PRICE)).build().unwrap();
    let outcome = agent.run("Go", RunOptions::default()).await;
    assert_eq!((outcome.end_reason, outcome.usage.cost_usd), (EndReason::Failed, Some(0.0)));
}

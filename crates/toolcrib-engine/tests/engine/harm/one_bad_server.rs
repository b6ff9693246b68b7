//! Calls that waited for sources which cannot have their tool.

use std::{future::pending, sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::{Instant, sleep};
use toolcrib_core::{
    DiscoveryError, Effect, ListContext, Listing, OnCollision, ReliabilityAction, ReliabilityRule,
    Retry, Tool, ToolProvider,
};
use toolcrib_engine::{EngineBuilder, OnFailure, TurnError, TurnOptions};

use crate::support::{builder, call, engine, in_time, menu, policy, rule_on, says, tool};

/// A source's behavior when it is listed.
#[derive(Clone, Copy)]
enum Step {
    List,
    ListLater,
    Fail,
    Never,
}

/// A source of some tools, with or without a known pattern of their names.
struct Remote {
    covers: Option<&'static str>,
    tools: Vec<Tool>,
    does: Step,
}

impl ToolProvider for Remote {
    fn covers(&self) -> Option<&str> {
        self.covers
    }

    fn list(self: Arc<Self>, _: &ListContext) -> Listing {
        match self.does {
            Step::List => Listing::now(self.tools.to_vec()),
            Step::ListLater => Listing::later(async move {
                sleep(Duration::from_secs(3)).await;
                Ok(self.tools.to_vec().into())
            }),
            Step::Fail => Listing::failed(DiscoveryError::source_failed("it is down")),
            Step::Never => Listing::later(pending()),
        }
    }
}

fn remote(covers: Option<&'static str>, names: &[&str], does: Step) -> Arc<Remote> {
    let listed = |name: &&str| {
        let server = name.split("__").nth(1).unwrap_or("x");
        says(builder(name).origin(format!("mcp:{server}")).mcp_server(server), "remote")
    };
    let tools = names.iter().map(listed).collect();
    Arc::new(Remote { covers, tools, does })
}

async fn runs(engine: EngineBuilder, tool: &str) -> bool {
    let engine = engine.build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = in_time(turn.iteration_for(tool)).await.unwrap();
    iteration.execute(vec![call(tool, json!({}))]).await[0].is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_call_waited_for_a_source_that_cannot_have_its_tool() {
    let retry = || ReliabilityRule::new(ReliabilityAction::Retry(Retry::default()));
    for does in [Step::Never, Step::Fail, Step::ListLater] {
        for on_failure in [OnFailure::Fail, OnFailure::Stale, OnFailure::Omit] {
            for rules in [vec![], vec![retry()]] {
                let began = Instant::now();
                let bad = remote(Some("mcp__bad__*"), &["mcp__bad__log"], does);
                let good = remote(Some("mcp__good__*"), &["mcp__good__log"], Step::List);
                let engine = engine().tool(tool("own")).provider_with(bad, on_failure);
                let engine = engine.provider_with(good, on_failure).reliability(rules);
                assert!(runs(engine, "mcp__good__log").await);
                assert_eq!(began.elapsed(), Duration::ZERO);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_may_have_the_tool_is_waited_for_and_its_failure_counts() {
    let late = || remote(Some("mcp__x__*"), &["mcp__x__log"], Step::ListLater);
    assert!(runs(engine().provider_with(late(), OnFailure::Fail), "mcp__x__log").await);
    // The names of its tools are unknown.
    let unknown = || remote(None, &["log"], Step::ListLater);
    assert!(runs(engine().provider_with(unknown(), OnFailure::Fail), "log").await);
    // Rules may use it instead of another.
    let down = remote(Some("mcp__y__*"), &[], Step::Fail);
    let rule = ReliabilityRule::new(ReliabilityAction::fallback_provider(late()));
    assert!(
        runs(engine().provider_with(down, OnFailure::Fail).reliability([rule]), "mcp__x__log")
            .await
    );
    let down = remote(Some("mcp__x__*"), &[], Step::Fail);
    let with = engine().provider_with_alternatives(down, [late() as _], OnFailure::Fail);
    let rule = ReliabilityRule::new(ReliabilityAction::RetryOther);
    assert!(runs(with.reliability([rule]), "mcp__x__log").await);

    let down = remote(Some("mcp__x__*"), &[], Step::Fail);
    let engine = engine().provider_with(down, OnFailure::Fail).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let failed = turn.iteration_for("mcp__x__log").await;
    assert!(matches!(failed, Err(TurnError::Discovery(_))), "{failed:?}");
}

/// Each decision on a tool is the same, whether the menu was made for it or for all.
#[tokio::test(start_paused = true)]
async fn a_call_is_decided_as_by_the_whole_menu() {
    const NAMES: [&str; 5] = ["own", "mcp__a__log", "mcp__a__push", "mcp__b__log", "shared"];
    for on_collision in [OnCollision::Keep, OnCollision::Replace] {
        let shared = says(builder("shared").origin("late").on_collision(on_collision), "late");
        let late = Remote { covers: None, tools: vec![shared], does: Step::ListLater };
        let engine = engine()
            .tool(tool("own"))
            .tool(tool("shared"))
            .provider_with(remote(Some("mcp__a__*"), &NAMES[1..3], Step::List), OnFailure::Fail)
            .provider_with(
                remote(Some("mcp__b__*"), &NAMES[3..4], Step::ListLater),
                OnFailure::Omit,
            )
            .provider_with(Arc::new(late), OnFailure::Fail)
            .policy(policy([rule_on("no", Effect::Deny, "mcp__a__push")]))
            .build()
            .unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let whole = turn.iteration().await.unwrap();
        for name in NAMES {
            let narrow = turn.iteration_for(name).await.unwrap();
            let origin =
                |menu: &toolcrib_core::Menu| menu.get(name).map(|tool| tool.origin().to_owned());
            assert_eq!(origin(narrow.menu()), origin(whole.menu()), "{name}");
        }
        assert!(!menu(&whole).contains(&"mcp__a__push".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_menu_waited_for_ever_where_a_time_was_given() {
    let never = remote(Some("mcp__x__*"), &[], Step::Never);
    let engine = engine().tool(tool("own")).provider_with(never, OnFailure::Stale).build().unwrap();
    let mut options = TurnOptions::default();
    options.source_timeout = Some(Duration::from_secs(5));
    let mut turn = engine.turn(options).unwrap();
    let began = Instant::now();
    let iteration = in_time(turn.iteration()).await.unwrap();
    assert_eq!(
        (menu(&iteration), began.elapsed()),
        (vec!["own".to_owned()], Duration::from_secs(5))
    );
    assert_eq!(iteration.notices()[0].reason.as_ref(), "it did not answer in time");
}

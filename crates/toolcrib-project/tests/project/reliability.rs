//! `[[reliability]]`, `[breaker]` and `[retry_budget]`.

use std::time::Duration;

use toolcrib_core::{
    DiscoveryError, Listing, ReliabilityAction, ReliabilityState, Retry, Stage, ToolProvider,
};
use toolcrib_engine::{Engine, ExhaustedReason, TurnError, TurnOptions};
use toolcrib_project::{LoadOptions, Project};

use crate::{
    documented::block,
    folder::{Folder, block_on},
};

/// The two rules of the discovery guide.
const OF_THE_GUIDE: &str = r#"
[[reliability]]
when = { message_contains = "hub unreachable", attempt_below = 3 }
then = "retry"
kind = "discovery-transient"
attempts = 10
base = "1ms"

[[reliability]]
when = { error_name = "AbortError" }
then = "fail_fast"
kind = "cancelled"
"#;

/// A hub that is never there.
struct Down(fn() -> DiscoveryError);

impl ToolProvider for Down {
    fn id(&self) -> &str {
        "hub"
    }

    fn list(self: std::sync::Arc<Self>, _: &toolcrib_core::ListContext) -> Listing {
        Listing::failed((self.0)())
    }
}

#[test]
fn the_rules_of_the_discovery_guide_hold_as_they_stand_in_a_project() {
    let project = Folder::with(OF_THE_GUIDE).load();
    let gives_up = |error| {
        let hub = std::sync::Arc::new(Down(error));
        let engine: Engine = project.engine_builder().provider(hub).build().unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        match block_on(turn.iteration()) {
            Err(TurnError::Reliability { exhausted, .. }) => exhausted,
            other => panic!("{other:?}"),
        }
    };
    let transient = gives_up(|| DiscoveryError::source_failed("hub unreachable: timed out"));
    assert_eq!((&*transient.kind, transient.attempts), ("discovery-transient", 3));
    assert_eq!(transient.code, ExhaustedReason::RetriesExhausted);
    assert_eq!(&*transient.rule, "reliability rule 1 (toolcrib.toml:2)");
    let aborted = gives_up(DiscoveryError::cancelled);
    assert_eq!((&*aborted.kind, aborted.attempts), ("cancelled", 1));
    assert_eq!(aborted.code, ExhaustedReason::FailFast);
}

#[test]
fn what_stands_in_the_documentation_loads_as_it_says() {
    let written = block("## Failures").replace("\"openai:gpt-5-mini\"", "\"script:small.toml\"");
    let agent = "[agent]\nmodel = \"script:main.toml\"\n";
    let written = written.replacen("[agent]\n", agent, 1);
    let script = "[[rule]]\ntext = \"Hi.\"\n";
    let folder = Folder::with(&written).file("main.toml", script).file("small.toml", script);
    let project = folder.load();
    assert!(project.warnings().is_empty(), "{}", project.warnings());
    assert_eq!(project.fallback_models()[0].name(), "script:small.toml");
    let rules = project.reliability();
    let ReliabilityAction::Retry(retry) = rules[0].then else { panic!("{rules:?}") };
    let expected =
        Retry { attempts: 3, base: Duration::from_millis(200), cap: Duration::from_secs(20) };
    assert_eq!(retry, expected);
    assert_eq!(retry, Retry::default(), "what the page shows are the defaults");
    let mut state = ReliabilityState::new(Stage::Discover, "mcp:git");
    state.error_class = "source";
    state.message = "hub unreachable";
    assert!(rules[0].when.matches(&state).unwrap());
    state.attempt = 3;
    assert!(!rules[0].when.matches(&state).unwrap());
    assert!(project.agent_builder().build().is_ok());
}

/// An explicit model disables other models that cost money.
#[test]
fn a_model_that_is_chosen_for_a_run_has_no_others_behind_it() {
    let script = "[[rule]]\ntext = \"Hi.\"\n";
    let folder = Folder::with(
        "[agent]\nmodel = 'openai:gpt-5'\nfallback_models = ['openai:gpt-5-mini']\n\
         [[reliability]]\nthen = 'fallback'\nmodel = 'openai:gpt-5-mini'\n\
         [[reliability]]\nthen = 'retry_other'\n",
    )
    .file("s.toml", script);
    let options = LoadOptions { model: Some("script:s.toml".into()), ..LoadOptions::default() };
    let project = Project::load(folder.path(), &options).unwrap();
    assert!(project.fallback_models().is_empty());
    assert_eq!(project.reliability().len(), 1);
    assert!(project.agent_builder().build().is_ok());
}

#[test]
fn what_is_wrong_with_rules_is_said_at_its_place() {
    let folder = Folder::with(
        r#"
[agent]
model = "script:s.toml"
[[reliability]]
when = { stage = "discovr", eror_class = "x" }
then = "retri"
[[reliability]]
when = { stage = "discover", error_class = ["rate_limit", "source"], error_name = "AbortErr", http_status = ["5xx", "9xx", 42] }
then = "retry_other"
attempts = 3
[[reliability]]
then = "fallback"
[[reliability]]
then = "fallback"
model = "script:other.toml"
cap = "0s"
[[reliability]]
when = { attempt_below = 1, cost_usd_below = -1.0 }
[breaker]
failures = 0
stages = ["models"]
[retry_budget]
share = -1
"#,
    )
    .file("s.toml", "[[rule]]\ntext = \"Hi.\"\n");
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:5:18: `stage` cannot be `discovr`
        help: did you mean `discover`?
    toolcrib.toml:5:29: unknown key `eror_class` in `when`
        help: did you mean `error_class`?
    toolcrib.toml:6:8: `then` cannot be `retri`
        help: did you mean `retry`?
    toolcrib.toml:8:45: `error_class` cannot be `rate_limit`
        help: the values are `source`, `gate`, `panic`, `timeout`, `cancelled`, `breaker_open`
    toolcrib.toml:8:83: `error_name` cannot be `AbortErr`
        help: did you mean `AbortError`?
    toolcrib.toml:8:117: `http_status` cannot be `9xx`
        help: write 429, "5xx" or "500-503", from 100 to 599
    toolcrib.toml:8:124: `http_status[2]` must be from 100 to 599
    toolcrib.toml:9:8: then = "retry_other" has no effect at the stage `discover`: no source has `alternatives`
        help: write below a [hub.NAME] or [mcp.NAME]: alternatives = ["OTHER"]
    toolcrib.toml:10:12: `attempts` has no effect here: it is for then = "retry"
        help: remove it, or write then = "retry"
    toolcrib.toml:11:1: `model` is missing in `[[reliability]]`
        help: write for example: model = "openai:gpt-5-mini"
    toolcrib.toml:15:9: unknown model of the agent: `script:other.toml`
        help: did you mean `script:s.toml`?
    toolcrib.toml:16:7: `cap` has no effect here: it is for then = "retry"
        help: remove it, or write then = "retry"
    toolcrib.toml:16:7: `cap` is zero; it would end before it began
        help: write a duration such as "500ms", "30s", "5m" or "1h 30m"
    toolcrib.toml:17:1: `then` is missing in `[[reliability]]`
        help: write for example: then = "retry"
    toolcrib.toml:18:26: `attempt_below` must be from 2 to 50
    toolcrib.toml:18:46: `cost_usd_below` must be a finite number from 0 up
    toolcrib.toml:20:12: `failures` must be from 1 to 1000
    toolcrib.toml:21:11: `stages[0]` cannot be `models`
        help: did you mean `model`?
    toolcrib.toml:23:9: `share` must be a finite number from 0 to 10
    "#);
}

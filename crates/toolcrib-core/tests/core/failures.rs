//! Reliability rules: conditions and waits.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolcrib_core::{
    DiscoveryErrorClass, FailureConditions, Glob, InvalidStatusRangeError, ModelErrorClass,
    ReliabilityAction, ReliabilityRule, ReliabilityState, Retry, Stage, StatusRange, static_tools,
};

/// A failure with all facts known.
fn failure() -> ReliabilityState<'static> {
    let mut state = ReliabilityState::new(Stage::Discover, "gated(g) > hub");
    state.leaf = "hub";
    state.attempt = 2;
    state.error_class = "source";
    state.code = Some("quota");
    state.message = "hub unreachable";
    state.http_status = Some(503);
    state.elapsed = Duration::from_secs(10);
    state.tokens = 100;
    state.cost_usd = Some(1.5);
    state
}

fn when(change: impl FnOnce(&mut FailureConditions)) -> FailureConditions {
    let mut when = FailureConditions::default();
    change(&mut when);
    when
}

fn words(words: &[&str]) -> Vec<Arc<str>> {
    words.iter().map(|word| Arc::from(*word)).collect()
}

#[test]
fn each_condition_holds_for_what_it_names_alone() {
    let globs = |glob: &str| vec![Glob::new(glob)];
    let statuses = |text: &str| vec![text.parse::<StatusRange>().unwrap()];
    assert!(FailureConditions::default().matches(&failure()).unwrap());
    for (holds, does_not) in [
        (
            when(|when| when.stage = Some(Stage::Discover)),
            when(|when| when.stage = Some(Stage::Tool)),
        ),
        (when(|when| when.providers = globs("hub")), when(|when| when.providers = globs("gated"))),
        (when(|when| when.providers = globs("*> hub")), when(|when| when.providers = globs("h"))),
        (
            when(|when| when.error_classes = words(&["gate", "source"])),
            when(|when| when.error_classes = words(&["gate"])),
        ),
        (
            when(|when| when.error_names = words(&["AbortError", "DiscoveryError"])),
            when(|when| when.error_names = words(&["AbortError"])),
        ),
        (when(|when| when.codes = words(&["quota"])), when(|when| when.codes = words(&["Quota"]))),
        (
            when(|when| when.message_contains = Some("unreach".into())),
            when(|when| when.message_contains = Some("Unreach".into())),
        ),
        (
            when(|when| when.http_statuses = statuses("5xx")),
            when(|when| when.http_statuses = statuses("429")),
        ),
        (
            when(|when| when.validation_error = Some(false)),
            when(|when| when.validation_error = Some(true)),
        ),
        (when(|when| when.attempt_below = Some(3)), when(|when| when.attempt_below = Some(2))),
        (
            when(|when| when.elapsed_below = Some(Duration::from_secs(11))),
            when(|when| when.elapsed_below = Some(Duration::from_secs(10))),
        ),
        (when(|when| when.tokens_below = Some(101)), when(|when| when.tokens_below = Some(100))),
        (
            when(|when| when.cost_usd_below = Some(1.6)),
            when(|when| when.cost_usd_below = Some(1.5)),
        ),
        (
            FailureConditions::default()
                .and(|state| state.tokens == 100)
                .and(|_| Ok::<_, String>(true)),
            FailureConditions::default().and(|state| state.tokens == 99).and(|_| true),
        ),
        (
            FailureConditions::default().and(|_| true),
            FailureConditions::default().and(|_| true).and(|_| Ok::<_, String>(false)),
        ),
    ] {
        assert!(holds.matches(&failure()).unwrap(), "{holds:?}");
        assert!(!does_not.matches(&failure()).unwrap(), "{does_not:?}");
    }
    // Unknown facts match no condition on them.
    let unknown = ReliabilityState::new(Stage::Discover, "hub");
    assert!(!when(|when| when.codes = words(&["quota"])).matches(&unknown).unwrap());
    assert!(!when(|when| when.http_statuses = statuses("5xx")).matches(&unknown).unwrap());
}

#[test]
fn all_conditions_must_be_true_and_an_error_is_returned() {
    let with_code = |check: fn(&ReliabilityState<'_>) -> Result<bool, String>| {
        when(|when| when.tokens_below = Some(1000)).and(check)
    };
    assert!(with_code(|_| Ok(true)).matches(&failure()).unwrap());
    let mut expensive = failure();
    expensive.tokens = 1000;
    assert!(!with_code(|_| Err("asked".into())).matches(&expensive).unwrap(), "it is asked last");
    let said = |check| with_code(check).matches(&failure()).unwrap_err().to_string();
    assert_eq!(said(|_| Err("no database".into())), "no database");
    assert_eq!(said(|_| panic!("bug")), "it panicked: bug");
    let first_fails = FailureConditions::default().and(|_| Err::<bool, _>("first")).and(|_| true);
    assert_eq!(first_fails.matches(&failure()).unwrap_err().to_string(), "first");
}

#[test]
fn an_error_has_the_name_of_its_class_or_of_its_stage() {
    let name = |class, stage| {
        let mut state = ReliabilityState::new(stage, "who");
        state.error_class = class;
        state.error_name()
    };
    assert_eq!(name("cancelled", Stage::Tool), "AbortError");
    assert_eq!(name("timeout", Stage::Model), "TimeoutError");
    let names = Stage::ALL.map(|stage| name("else", stage));
    assert_eq!(names, ["DiscoveryError", "ModelError", "ToolError"]);
}

/// Renaming a variant once changed the class in JSON, and not the one that rules name.
#[test]
fn a_class_has_the_same_word_in_json_as_in_rules() {
    for class in ModelErrorClass::ALL {
        assert_eq!(json!(class), class.as_str());
    }
    for class in DiscoveryErrorClass::ALL {
        assert_eq!(json!(class), class.as_str());
    }
}

#[test]
fn stages_and_what_rules_do_have_words_of_their_own() {
    assert_eq!(Stage::ALL.map(|stage| stage.to_string()), ["discover", "model", "tool"]);
    let classes = Stage::ALL.map(Stage::error_classes);
    for (classes, own) in classes.iter().zip(["gate", "rate_limit", "input_invalid"]) {
        assert!(classes.contains(&own) && classes.contains(&"breaker_open"), "{classes:?}");
    }
    let fallbacks = [
        ReliabilityAction::fallback_model("m"),
        ReliabilityAction::fallback_provider(static_tools([])),
        ReliabilityAction::fallback_answer(|_, _| std::future::pending()),
    ];
    assert!(fallbacks.iter().all(|then| then.as_str() == "fallback"));
    let others = [
        ReliabilityAction::Ok,
        ReliabilityAction::Continue,
        ReliabilityAction::Retry(Retry::default()),
        ReliabilityAction::RetryOther,
        ReliabilityAction::FailFast,
    ];
    assert_eq!(
        others.map(|then| then.as_str()),
        ["ok", "continue", "retry", "retry_other", "fail_fast"]
    );
}

#[test]
fn a_built_rule_has_its_stage_class_kind_and_label() {
    let rule = ReliabilityRule::new(ReliabilityAction::Ok)
        .stage(Stage::Tool)
        .error_class("timeout")
        .error_name("TimeoutError")
        .kind("slow")
        .label("slow tools");
    assert_eq!((rule.kind.as_deref(), rule.label.as_deref()), (Some("slow"), Some("slow tools")));
    assert!(rule.has_class("timeout") && !rule.has_class("gate"));
    let mut state = ReliabilityState::new(Stage::Tool, "t");
    assert!(!rule.when.matches(&state).unwrap());
    state.error_class = "timeout";
    assert!(rule.when.matches(&state).unwrap());
    assert!(!rule.when(|state| state.attempt > 1).when.matches(&state).unwrap());
}

#[test]
fn a_wait_doubles_up_to_its_cap_and_is_as_long_as_asked_for() {
    let second = Duration::from_secs(1);
    let retry = Retry { base: second, cap: 5 * second, ..Retry::attempts(7) };
    assert_eq!(retry.attempts, 7);
    let longest = [1, 2, 3, 4, 99].map(|attempt| retry.wait(attempt, 1.0, None).unwrap());
    assert_eq!(longest, [second, 2 * second, 4 * second, 5 * second, 5 * second]);
    for (share, asked, expected) in [
        (0.5, None, Some(second)),
        (0.0, None, Some(Duration::ZERO)),
        (-1.0, None, Some(Duration::ZERO)),
        (2.0, None, Some(2 * second)),
        (f64::NAN, None, Some(2 * second)),
        (0.0, Some(5 * second), Some(5 * second)),
        (1.0, Some(second), Some(2 * second)),
        (0.0, Some(6 * second), None),
    ] {
        assert_eq!(retry.wait(2, share, asked), expected, "{share} {asked:?}");
    }
}

#[test]
fn statuses_are_a_number_a_hundred_or_a_range() {
    let contains = |text: &str| {
        let range = text.parse::<StatusRange>()?;
        Ok::<_, InvalidStatusRangeError>(
            [99, 100, 429, 500, 503, 504, 599, 600].map(|n| range.contains(n)),
        )
    };
    assert_eq!(contains("429"), Ok([false, false, true, false, false, false, false, false]));
    assert_eq!(contains("5xx"), Ok([false, false, false, true, true, true, true, false]));
    assert_eq!(contains("500-503"), Ok([false, false, false, true, true, false, false, false]));
    assert_eq!(contains("100-599"), Ok([false, true, true, true, true, true, true, false]));
    for wrong in [
        "", "xx", "5x", "9xx", "0xx", "655xx", "503-500", "99", "600", "65536", "99-200",
        "500-600", "abc", "1-",
    ] {
        assert_eq!(contains(wrong), Err(InvalidStatusRangeError), "{wrong}");
    }
    assert!(StatusRange::from(404).contains(404) && !StatusRange::from(404).contains(405));
}

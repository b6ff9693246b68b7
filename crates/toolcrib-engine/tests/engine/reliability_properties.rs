//! Properties of any rules.

use std::{sync::Arc, time::Duration};

use proptest::{collection::vec, prelude::*};
use tokio::time::Instant;
use toolcrib_core::{
    ModelError, ModelErrorClass, ReliabilityAction, ReliabilityRule, Retry, Stage,
};
use toolcrib_engine::{FailedAttempt, RecoveryStep, TurnOptions};

use crate::support::{engine, in_time};

fn any_then() -> impl Strategy<Value = ReliabilityAction> {
    prop_oneof![
        (0..6_u32, 0..50_u64, 0..50_u64).prop_map(
            |(attempts, base, cap)| ReliabilityAction::Retry(Retry {
                attempts,
                base: Duration::from_millis(base),
                cap: Duration::from_millis(cap),
            })
        ),
        Just(ReliabilityAction::RetryOther),
        Just(ReliabilityAction::Continue),
        Just(ReliabilityAction::FailFast),
        Just(ReliabilityAction::Ok),
        (0..4_u8).prop_map(|model| ReliabilityAction::fallback_model(format!("m{model}"))),
    ]
}

fn any_rules() -> impl Strategy<Value = Vec<ReliabilityRule>> {
    let rule = (any_then(), prop::option::of(0..6_u32)).prop_map(|(then, below)| {
        let mut rule = ReliabilityRule::new(then);
        rule.when.attempt_below = below;
        rule
    });
    vec(rule, 0..6)
}

proptest! {
    /// Whatever the rules: the walk ends, no one is asked more often than the rules and the models
    /// allow, a retry comes only where a rule says so, or the default one if none is about the
    /// failure, and no wait is longer than its cap.
    #[test]
    fn no_rules_retry_without_end(rules in any_rules(), asked_to_wait in prop::option::of(0..80_u64)) {
        let longest = rules.iter().filter_map(|rule| match rule.then {
            ReliabilityAction::Retry(retry) => Some(retry.cap),
            _ => None,
        }).max().unwrap_or_default();
        let is_about = |rule: &ReliabilityRule| {
            !matches!(rule.then, ReliabilityAction::Continue)
                && rule.when.attempt_below.is_none_or(|below| below > 1)
        };
        let is_default = !rules.iter().any(is_about);
        let longest = longest.max(if is_default { Duration::from_secs(60) } else { Duration::ZERO });
        let retries = rules.iter().filter_map(|rule| match rule.then {
            ReliabilityAction::Retry(retry) => Some(retry.attempts as usize),
            _ => None,
        }).max().unwrap_or_default().max(if is_default { 3 } else { 1 });
        let fallbacks = rules.iter().filter(|rule| matches!(rule.then, ReliabilityAction::Fallback(_))).count();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all().start_paused(true).build().unwrap();
        let (attempts, worst) = runtime.block_on(async {
            let engine = engine().reliability(rules).build().unwrap();
            let turn = engine.turn(TurnOptions::default()).unwrap();
            let recovery = turn.recovery();
            let names: [Arc<str>; 3] = ["m0".into(), "m1".into(), "m2".into()];
            let mut attempts = recovery.attempts(Stage::Model, names);
            let mut worst = Duration::ZERO;
            loop {
                attempts.begin().unwrap();
                let mut error = ModelError::new(ModelErrorClass::Network, "down");
                error.retry_after = asked_to_wait.map(Duration::from_millis);
                let began = Instant::now();
                let next = in_time(attempts.failed(&FailedAttempt::of_model(&error))).await;
                worst = worst.max(began.elapsed());
                if !matches!(next, RecoveryStep::Retry | RecoveryStep::Other(_)) {
                    return (attempts.attempts() as usize, worst);
                }
            }
        });
        prop_assert!(attempts <= (3 + fallbacks) * retries, "{attempts} attempts");
        // The clock of the runtime counts whole milliseconds.
        prop_assert!(worst <= longest + Duration::from_millis(1), "{worst:?} > {longest:?}");
    }

    /// A wait is between zero and the cap, and as long as requested if that is within it.
    #[test]
    fn a_wait_is_within_its_bounds(
        base in 0..10_000_000_u64,
        cap in 0..10_000_000_u64,
        attempt in any::<u32>(),
        share in any::<f64>(),
        asked in prop::option::of(0..10_000_000_u64),
    ) {
        let (base, cap) = (Duration::from_micros(base), Duration::from_micros(cap));
        let asked = asked.map(Duration::from_micros);
        match (Retry { attempts: 3, base, cap }).wait(attempt, share, asked) {
            None => prop_assert!(asked.is_some_and(|asked| asked > cap)),
            Some(wait) => {
                prop_assert!(wait <= cap);
                prop_assert!(asked.is_none_or(|asked| wait >= asked));
            }
        }
    }
}

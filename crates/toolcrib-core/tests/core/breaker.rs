//! The breaker: compared with a minimal model, and in a scenario.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};
use tokio::time::advance;
use toolcrib_core::{Breaker, BreakerConfig, BreakerOpenError, BreakerState, Permit};

const OPEN_FOR: Duration = Duration::from_secs(30);

fn breaker(failures: u32) -> Breaker {
    Breaker::new(BreakerConfig { failures, open_for: OPEN_FOR })
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_opens_for_the_longest_duration_stays_open() {
    let breaker = Breaker::new(BreakerConfig { failures: 1, open_for: Duration::MAX });
    breaker.admit().unwrap().failed();
    advance(Duration::from_secs(1_000_000)).await;
    breaker.admit().unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_breaker_opens_after_consecutive_failures_and_closes_after_one_success() {
    let breaker = breaker(2);
    breaker.admit().unwrap().failed();
    breaker.admit().unwrap().succeeded();
    breaker.admit().unwrap().failed();
    assert_eq!((breaker.state(), breaker.retry_in()), (BreakerState::Closed, None));
    breaker.admit().unwrap().failed();
    assert_eq!(breaker.state(), BreakerState::Open { retry_in: OPEN_FOR });

    advance(Duration::from_secs(10)).await;
    let refused = breaker.admit().unwrap_err();
    assert_eq!(refused, BreakerOpenError { retry_in: Some(Duration::from_secs(20)) });
    assert_eq!(
        refused.to_string(),
        "not tried, because it failed several times in a row; it is tried again in 20.0s"
    );

    advance(Duration::from_secs(20)).await;
    let probe = breaker.admit().unwrap();
    assert_eq!(breaker.clone().admit().unwrap_err(), BreakerOpenError { retry_in: None });
    drop(probe);
    breaker.admit().unwrap().failed();
    assert_eq!(breaker.retry_in(), Some(OPEN_FOR), "open again, for the whole time");

    advance(OPEN_FOR).await;
    breaker.admit().unwrap().succeeded();
    assert_eq!(breaker.state(), BreakerState::Closed);
    breaker.admit().unwrap().failed();
    assert!(breaker.admit().is_ok(), "failures are counted anew");
}

#[tokio::test(start_paused = true)]
async fn attempts_from_before_the_opening_do_not_count() {
    let breaker = breaker(1);
    let (early, late) = (breaker.admit().unwrap(), breaker.admit().unwrap());
    breaker.admit().unwrap().failed();
    early.succeeded();
    assert_eq!(breaker.retry_in(), Some(OPEN_FOR));
    advance(OPEN_FOR).await;
    let probe = breaker.admit().unwrap();
    late.failed();
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    probe.succeeded();
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[derive(Debug, Clone)]
enum SkillStep {
    Admit,
    Succeed(prop::sample::Index),
    Fail(prop::sample::Index),
    Drop(prop::sample::Index),
    Wait(u64),
}

fn step() -> impl Strategy<Value = SkillStep> {
    let which = any::<prop::sample::Index>;
    prop_oneof![
        4 => Just(SkillStep::Admit),
        1 => which().prop_map(SkillStep::Succeed),
        4 => which().prop_map(SkillStep::Fail),
        1 => which().prop_map(SkillStep::Drop),
        2 => (0_u64..45).prop_map(SkillStep::Wait),
    ]
}

/// A model of a breaker: the history of the reports that count.
#[derive(Default)]
struct Expected {
    in_a_row: u32,
    opened_at: Option<u64>,
    probing: bool,
    /// The permits that may still report.
    generation: u32,
}

impl Expected {
    fn admits(&mut self, now: u64) -> bool {
        let Some(opened_at) = self.opened_at else { return true };
        let due = !self.probing && now >= opened_at + OPEN_FOR.as_secs();
        if due {
            self.probing = true;
            self.generation += 1;
        }
        due
    }

    fn succeeded(&mut self) {
        if self.opened_at.take().is_some() {
            self.generation += 1;
        }
        (self.in_a_row, self.probing) = (0, false);
    }

    fn failed(&mut self, limit: u32, now: u64) {
        self.in_a_row += 1;
        if self.probing || self.in_a_row >= limit.max(1) {
            (self.opened_at, self.probing) = (Some(now), false);
            self.generation += 1;
        }
    }

    fn dropped(&mut self) {
        if self.probing {
            self.probing = false;
            self.generation += 1;
        }
    }
}

proptest! {
    #[test]
    fn a_breaker_behaves_like_its_model(limit in 0_u32..4, steps in vec(step(), 0..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let breaker = breaker(limit);
            let (mut expected, mut now) = (Expected::default(), 0_u64);
            let mut permits: Vec<(Permit, u32)> = Vec::new();
            for step in steps {
                let mut take = |index: prop::sample::Index| {
                    (!permits.is_empty()).then(|| permits.remove(index.index(permits.len())))
                };
                match step {
                    SkillStep::Wait(seconds) => {
                        now += seconds;
                        advance(Duration::from_secs(seconds)).await;
                    }
                    SkillStep::Admit => {
                        let admitted = breaker.admit();
                        prop_assert_eq!(admitted.is_ok(), expected.admits(now));
                        permits.extend(admitted.ok().map(|permit| (permit, expected.generation)));
                    }
                    SkillStep::Succeed(index) => if let Some((permit, of)) = take(index) {
                        permit.succeeded();
                        if of == expected.generation {
                            expected.succeeded();
                        }
                    },
                    SkillStep::Fail(index) => if let Some((permit, of)) = take(index) {
                        permit.failed();
                        if of == expected.generation {
                            expected.failed(limit, now);
                        }
                    },
                    SkillStep::Drop(index) => if let Some((permit, of)) = take(index) {
                        drop(permit);
                        if of == expected.generation {
                            expected.dropped();
                        }
                    },
                }
                let state = match (expected.opened_at, expected.probing) {
                    (None, _) => BreakerState::Closed,
                    (Some(_), true) => BreakerState::HalfOpen,
                    (Some(at), false) => BreakerState::Open {
                        retry_in: Duration::from_secs((at + OPEN_FOR.as_secs()).saturating_sub(now)),
                    },
                };
                prop_assert_eq!(breaker.state(), state);
            }
            Ok(())
        })?;
    }
}

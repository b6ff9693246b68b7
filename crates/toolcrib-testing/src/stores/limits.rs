//! Limits are kept by all callers together.

use std::{num::NonZeroU32, thread, time::Duration};

use toolcrib_core::{LimitStore, SessionStoreError, SharedLimit};
use uuid::Uuid;

use super::{StoreViolations, outcome};

/// The number of a full bucket, and of the callers that empty it at the same time.
const MOST: u32 = 10;
const CALLERS: u32 = 4;

const ONE: NonZeroU32 = NonZeroU32::MIN;

/// Tests a store of limits. It uses its own buckets.
///
/// # Errors
/// All violations.
pub fn check_limit_store(store: &dyn LimitStore) -> Result<(), StoreViolations> {
    let mut broken = StoreViolations::default();
    let result = check(store, &mut broken);
    outcome(broken, [("limits", result)])
}

fn check(store: &dyn LimitStore, broken: &mut StoreViolations) -> Result<(), SessionStoreError> {
    let most = NonZeroU32::new(MOST).unwrap_or(NonZeroU32::MIN);
    let slow = SharedLimit { most, period: Duration::from_hours(1) };
    let (mine, other) = (Uuid::new_v4().to_string(), format!("{}\0", Uuid::new_v4()));
    let taken: usize = thread::scope(|scope| {
        let take = |_| scope.spawn(|| (0..MOST).map(|_| store.take(&mine, ONE, slow)).collect());
        let callers: Vec<_> = (0..CALLERS).map(take).collect();
        let taken = callers.into_iter().filter_map(|caller| caller.join().ok());
        taken.flat_map(|all: Vec<_>| all).filter(|one| matches!(one, Ok(None))).count()
    });
    let is_kept = u32::try_from(taken) == Ok(MOST);
    broken.unless(is_kept, "a full bucket must have its number, for all callers together");
    let wait = store.take(&mine, ONE, slow)?;
    let in_time = wait.is_some_and(|wait| !wait.is_zero() && wait <= slow.period / MOST);
    broken.unless(in_time, "an empty bucket must tell the time until the next");
    broken.unless(store.take(&other, ONE, slow)?.is_none(), "each bucket must be apart");
    let many = Uuid::new_v4().to_string();
    let half = NonZeroU32::new(MOST / 2 + 1).unwrap_or(ONE);
    broken.unless(store.take(&many, half, slow)?.is_none(), "several must be taken at once");
    let wait = store.take(&many, half, slow)?;
    broken.unless(wait.is_some(), "what a bucket does not have must not be taken");
    let rest =
        (0..MOST).map(|_| store.take(&many, ONE, slow)).filter(|one| matches!(one, Ok(None)));
    let is_rest = u32::try_from(rest.count()) == Ok(MOST - half.get());
    broken.unless(is_rest, "a refusal must take nothing");
    let fast = SharedLimit { most: NonZeroU32::MIN, period: Duration::from_millis(2) };
    let name = Uuid::new_v4().to_string();
    store.take(&name, ONE, fast)?;
    thread::sleep(Duration::from_millis(20));
    broken.unless(store.take(&name, ONE, fast)?.is_none(), "a bucket must be filled in time");
    Ok(())
}

//! Limits of a token's calls: how many a minute, and how many at the same time.

use std::{error::Error, num::NonZeroU32, sync::Arc, time::Duration};

use http::StatusCode;
use parking_lot::Mutex;
use rmcp::{ErrorData, model::RequestId};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::Instant,
};
use toolcrib_core::{SessionStoreError, SharedLimit};

use super::replicas::Replicas;
use crate::wire::reply::Refusal;

/// The methods that count: those that reach a tool or a server.
const CALLS: [&str; 7] = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "resources/directory/read",
    "skills/list",
    "skills/get",
    "completion/complete",
];

/// The limits of the calls of one token over HTTP. A call beyond them is refused with 429 and
/// `Retry-After`, before anything of it runs. Default: no limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CallLimits {
    /// The calls a minute. That many may come at once; later ones are permitted at this rate.
    pub per_minute: Option<NonZeroU32>,
    /// The calls at the same time.
    pub concurrent: Option<NonZeroU32>,
}

impl CallLimits {
    /// Creates limits that permit everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limit of calls a minute.
    #[must_use]
    pub fn per_minute(mut self, calls: NonZeroU32) -> Self {
        self.per_minute = Some(calls);
        self
    }

    /// Sets the limit of calls at the same time.
    #[must_use]
    pub fn concurrent(mut self, calls: NonZeroU32) -> Self {
        self.concurrent = Some(calls);
        self
    }
}

/// Counts the calls of one token.
pub(crate) struct Limiter {
    limits: CallLimits,
    running: Option<Arc<Semaphore>>,
    bucket: Mutex<Bucket>,
    /// Instead of the bucket, if there are several replicas.
    shared: Option<SharedBucket>,
}

/// A bucket in the store of the replicas.
struct SharedBucket {
    replicas: Replicas,
    name: Arc<str>,
    allotted: tokio::sync::Mutex<Allotment>,
}

/// Calls that were taken from a large bucket and not made yet.
struct Allotment {
    count: u32,
    left: u32,
    /// They are void then: a later call would be one of another minute.
    until: Instant,
    /// When the store failed last: who waited for it meanwhile does not wait for its timeout again.
    failed: Option<Instant>,
}

/// How long a store that failed is not asked again for an allotment.
const FAILED_FOR: Duration = Duration::from_secs(1);

/// A smaller limit is counted call by call, and so is exact.
const EXACT_BELOW: u32 = 100;

/// The most calls of an allotment. A larger limit permits this number less at once.
const MOST_ALLOTTED: u32 = 10;

const MINUTE: Duration = Duration::from_secs(60);

/// A token bucket (as in RFC 2697): it is full at first, and a call takes one.
struct Bucket {
    left: f64,
    at: Instant,
}

impl Limiter {
    /// `shared` is the name of its bucket in the store of the replicas.
    pub(crate) fn new(limits: CallLimits, shared: Option<(&Replicas, Arc<str>)>) -> Self {
        let places = |most: NonZeroU32| usize::try_from(most.get()).unwrap_or(usize::MAX);
        let places = limits.concurrent.map(places);
        let running = places.map(|most| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))));
        let left = limits.per_minute.map_or(0.0, |most| f64::from(most.get()));
        let shared = shared.map(|(replicas, name)| SharedBucket::new(replicas, name));
        Self { limits, running, bucket: Mutex::new(Bucket { left, at: Instant::now() }), shared }
    }

    /// Admits a request; a call at the limit is refused. The permit is needed until its end.
    pub(crate) async fn admit(
        &self,
        method: &str,
        id: &RequestId,
    ) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
        if !CALLS.contains(&method) {
            return Ok(None);
        }
        let running = self.running.as_ref();
        let permit = running.map(|running| Arc::clone(running).try_acquire_owned()).transpose();
        let permit = permit.map_err(|_| {
            let most = self.limits.concurrent.map_or(0, NonZeroU32::get);
            let message = format!(
                "this token has reached its limit of {most} calls at the same time; send the call \
                 again when one has ended"
            );
            refusal(id, message, Duration::from_secs(1))
        })?;
        if let Some(most) = self.limits.per_minute
            && let Err(wait) = self.take(most, id).await?
        {
            let seconds = whole_seconds(wait);
            let message = format!(
                "this token has reached its limit of {most} calls a minute; send the call again in \
                 {seconds} s"
            );
            return Err(refusal(id, message, wait));
        }
        Ok(permit)
    }

    async fn take(
        &self,
        most: NonZeroU32,
        id: &RequestId,
    ) -> Result<Result<(), Duration>, Refusal> {
        let Some(shared) = &self.shared else {
            return Ok(self.bucket.lock().take(most, Instant::now()));
        };
        shared.take(most).await.map_err(|error| {
            let message =
                "the limit of this token cannot be counted now; send the call again later";
            let refusal = refusal(id, message.to_owned(), Duration::from_secs(2));
            let refusal = refusal.status_is(StatusCode::SERVICE_UNAVAILABLE);
            refusal.cause(format!("the store of the replicas: {error}"))
        })
    }
}

impl SharedBucket {
    fn new(replicas: &Replicas, name: Arc<str>) -> Self {
        let allotted = Allotment { count: 0, left: 0, until: Instant::now(), failed: None };
        Self { replicas: replicas.clone(), name, allotted: allotted.into() }
    }

    /// Takes one call, or returns the time until the next one. A small limit is one round trip for each call. A
    /// large one is never exceeded: calls that are allotted in advance are void after the time in which the
    /// bucket gets as many again, and the bucket is smaller by as many.
    async fn take(
        &self,
        per_minute: NonZeroU32,
    ) -> Result<Result<(), Duration>, SessionStoreError> {
        let most = per_minute.get();
        if most < EXACT_BELOW {
            return self.taken(1, SharedLimit { most: per_minute, period: MINUTE }).await;
        }
        let at_once = NonZeroU32::new(most - MOST_ALLOTTED).unwrap_or(NonZeroU32::MIN);
        let period = MINUTE.saturating_mul(at_once.get()) / most;
        let limit = SharedLimit { most: at_once, period };
        let mut allotted = self.allotted.lock().await;
        let now = Instant::now();
        if allotted.left > 0 && now < allotted.until {
            allotted.left -= 1;
            return Ok(Ok(()));
        }
        if allotted.failed.is_some_and(|failed| failed.elapsed() < FAILED_FOR) {
            let message = "the database did not answer a moment ago";
            return Err(failure(message));
        }
        // Twice as many if all were used in time, otherwise as many as were.
        let next = match allotted.left {
            0 if now < allotted.until => allotted.count.saturating_mul(2),
            left => allotted.count - left,
        };
        let mut count = next.clamp(1, MOST_ALLOTTED);
        let mut taken = self.taken(count, limit).await;
        if matches!(taken, Ok(Err(_))) && count > 1 {
            count = 1;
            taken = self.taken(count, limit).await;
        }
        allotted.failed = taken.is_err().then(Instant::now);
        if let Ok(Ok(())) = taken {
            let until = now + MINUTE.saturating_mul(MOST_ALLOTTED) / most;
            *allotted = Allotment { count, left: count - 1, until, failed: None };
        }
        taken
    }

    async fn taken(
        &self,
        count: u32,
        limit: SharedLimit,
    ) -> Result<Result<(), Duration>, SessionStoreError> {
        let (store, name) = (Arc::clone(self.replicas.store()), Arc::clone(&self.name));
        let count = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let taken = spawn_blocking(move || store.take(&name, count, limit)).await;
        // A panic of the store is a failure of it.
        Ok(taken.map_err(failure)??.map_or(Ok(()), Err))
    }
}

fn failure(source: impl Into<Box<dyn Error + Send + Sync>>) -> SessionStoreError {
    SessionStoreError::Io {
        store: "the store of the replicas".to_owned(),
        doing: "written",
        source: source.into(),
    }
}

impl Bucket {
    /// Takes one call, or returns the time until the next one.
    fn take(&mut self, per_minute: NonZeroU32, now: Instant) -> Result<(), Duration> {
        let (most, a_second) = (f64::from(per_minute.get()), f64::from(per_minute.get()) / 60.0);
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * a_second).min(most);
        self.at = now;
        if self.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.left) / a_second));
        }
        self.left -= 1.0;
        Ok(())
    }
}

fn refusal(id: &RequestId, message: String, wait: Duration) -> Refusal {
    let refusal = Refusal::of(Some(id.clone()), ErrorData::internal_error(message, None));
    refusal.status_is(StatusCode::TOO_MANY_REQUESTS).retry_after(wait)
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_permits_its_size_at_once_and_then_its_rate() {
        let (begin, six) = (Instant::now(), NonZeroU32::new(6).unwrap());
        let mut bucket = Bucket { left: 6.0, at: begin };
        for _ in 0..6 {
            assert_eq!(bucket.take(six, begin), Ok(()));
        }
        let wait = bucket.take(six, begin).unwrap_err();
        assert_eq!(whole_seconds(wait), 10);
        assert!(bucket.take(six, begin + Duration::from_secs(9)).is_err());
        assert_eq!(bucket.take(six, begin + Duration::from_millis(10_001)), Ok(()));
        // However long it rests, it has no more than its size.
        let later = begin + Duration::from_secs(3600);
        assert_eq!((0..9).filter(|_| bucket.take(six, later).is_ok()).count(), 6);
    }
}

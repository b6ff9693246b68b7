//! Time in tests.

use std::{future::pending, sync::mpsc, thread, time::Duration};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    time::{sleep, timeout},
};

use crate::fail::fail;

/// The timeout of [`in_time`] and [`EventRecorder::wait_for`](crate::EventRecorder::wait_for).
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a future on a new runtime with a paused clock: whenever all tasks wait, the clock jumps to
/// the next deadline. A tool's 60 seconds pass immediately, and deadlines fire in their real order.
///
/// All deadlines of Toolcrib use tokio's clock, so this applies to calls, turns, model streams and
/// providers. Durations in events and outcomes are real time, and so are near zero here.
/// `#[tokio::test(start_paused = true)]` does the same for a whole test.
///
/// The clock does not advance while the blocking pool works, and a body there that waits for it
/// waits forever. It does *not* wait for a network or a process: with those, a deadline may pass
/// before the first byte has arrived.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_testing::paused;
///
/// let answer = paused(async {
///     tokio::time::timeout(Duration::from_secs(3600), std::future::pending::<()>()).await
/// });
/// assert!(answer.is_err());
/// ```
///
/// # Panics
/// If called inside another runtime, as in a `#[tokio::test]`, and if no runtime can be made.
#[track_caller]
pub fn paused<T>(future: impl IntoFuture<Output = T>) -> T {
    if Handle::try_current().is_ok() {
        fail(
            "`paused` makes a runtime, but was called inside one: call it from a plain `#[test]`, \
             or await the future under `#[tokio::test(start_paused = true)]`",
        );
    }
    match Builder::new_current_thread().enable_all().start_paused(true).build() {
        Ok(runtime) => runtime.block_on(future.into_future()),
        Err(error) => fail(format!("no runtime can be made: {error}")),
    }
}

/// Awaits a future, and fails the test if it takes more than two minutes of tokio's clock: a guard
/// against tests that hang, not a measurement.
///
/// # Panics
/// When the time is up.
pub async fn in_time<T>(future: impl IntoFuture<Output = T>) -> T {
    match timeout(PATIENCE, future.into_future()).await {
        Ok(done) => done,
        Err(_) => fail(format!("the test hangs: nothing came within {PATIENCE:?}")),
    }
}

/// Awaits a future until the limit has passed on tokio's clock, or on the real one: a paused clock
/// does not advance while a blocking body runs, and the future may wait for that body.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = future => Some(done),
        () = sleep(limit) => None,
        () = real_time(limit) => None,
    }
}

/// Real time, independent of tokio's clock. Dropping it ends its thread.
async fn real_time(limit: Duration) {
    let (_waiting, stop) = mpsc::channel::<()>();
    let (ring, rings) = oneshot::channel();
    let alarm = thread::Builder::new().spawn(move || {
        if stop.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = ring.send(());
        }
    });
    if alarm.is_err() || rings.await.is_err() {
        pending::<()>().await;
    }
}

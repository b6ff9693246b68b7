//! Time in tests.

use std::{future::pending, sync::mpsc, thread, time::Duration};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    time::{sleep, timeout},
};

use crate::fail::fail;

/// How long [`in_time`] and [`EventRecorder::wait_for`](crate::EventRecorder::wait_for) wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a future on a runtime of its own whose clock is paused: whenever nothing is left to do
/// but to wait, the clock jumps to the next deadline. A tool's 60 seconds pass at once, in the
/// order in which they would.
///
/// All deadlines of Toolcrib are on tokio's clock, so this holds for calls, turns, model streams
/// and providers. Durations that events and outcomes report are real time, and so are near zero
/// here. `#[tokio::test(start_paused = true)]` does the same for a whole test.
///
/// The clock stands still while work is done on the blocking pool, and a body there that waits
/// for it waits for ever. It does *not* wait for a network or a process: with those, a deadline
/// may pass before the first byte has come.
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
/// Inside another runtime, as in a `#[tokio::test]`, and when none can be made.
#[track_caller]
pub fn paused<T>(future: impl IntoFuture<Output = T>) -> T {
    if Handle::try_current().is_ok() {
        fail(
            "`paused` makes a runtime, and is called inside one: call it from a plain `#[test]`, \
             or await the future under `#[tokio::test(start_paused = true)]`",
        );
    }
    match Builder::new_current_thread().enable_all().start_paused(true).build() {
        Ok(runtime) => runtime.block_on(future.into_future()),
        Err(error) => fail(format!("no runtime can be made: {error}")),
    }
}

/// Waits for a future that ends by itself, and fails the test if it does not within 30 seconds
/// of tokio's clock: a guard against tests that hang, not a measurement.
///
/// # Panics
/// When the time is up.
pub async fn in_time<T>(future: impl IntoFuture<Output = T>) -> T {
    match timeout(PATIENCE, future.into_future()).await {
        Ok(done) => done,
        Err(_) => fail(format!("the test hangs: nothing came within {PATIENCE:?}")),
    }
}

/// Waits for a future until so much time has passed on tokio's clock, or on the real one: a
/// paused clock stands still while a blocking body runs, and that body may be the one that is
/// waited for.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = future => Some(done),
        () = sleep(limit) => None,
        () = real_time(limit) => None,
    }
}

/// Real time, whatever tokio's clock does. Dropping it ends its thread.
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

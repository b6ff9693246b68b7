//! A store opens while others open it and write.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use toolcrib_core::{SessionStore, SessionStoreError};

use super::{LONG, StoreViolations, began, ended, new, owner, write};

/// The number of processes that start at the same time, and how often each opens the store.
const STARTS: usize = 8;
const TIMES: usize = 3;

/// Tests that a store can be opened while others open it and write, as replicas of one service do: none
/// fails, and none waits for another in a circle. `open` opens the same store each time, which is empty or
/// does not exist at first; `patience` is the time after which a start counts as stuck.
///
/// # Errors
/// All violations.
pub fn check_start<S: SessionStore>(
    open: impl Fn() -> Result<S, SessionStoreError> + Send + Sync + 'static,
    patience: Duration,
) -> Result<(), StoreViolations> {
    let mut broken = StoreViolations::default();
    let open = Arc::new(open);
    let (report, reports) = mpsc::channel();
    for _ in 0..STARTS {
        let (open, report) = (Arc::clone(&open), report.clone());
        // Not scoped: a start that is stuck never ends.
        thread::spawn(move || {
            let started = (0..TIMES).try_for_each(|_| start(&*open));
            drop(report.send(started));
        });
    }
    let deadline = Instant::now() + patience;
    for _ in 0..STARTS {
        match reports.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let clause = format!("a start must not fail because of another: {error}");
                broken.unless(false, &clause);
            }
            Err(_) => {
                broken.unless(false, "starts must not wait for each other without an end");
                break;
            }
        }
    }
    broken.into_result()
}

/// Opens the store, and writes a session.
fn start<S: SessionStore>(
    open: &impl Fn() -> Result<S, SessionStoreError>,
) -> Result<(), SessionStoreError> {
    let (store, owner) = (open()?, owner());
    let info = store.create(&new(&owner, None))?;
    let lease = store.acquire(&owner, &info.id, LONG)?;
    write(&store, &lease, &[began(), ended()])?;
    store.release(&lease)
}

//! Signal handling.

use std::{fs, io, thread};

use parking_lot::Mutex;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ},
    iterator::Signals,
};
use toolcrib_core::CancellationToken;

use crate::exit;

/// From here on SIGINT, SIGTERM and SIGHUP no longer kill the process by themselves: the first one
/// cancels, the second ends the process at once. An ignored SIGHUP, as under `nohup`, stays
/// ignored.
///
/// A separate thread receives the signals: a blocked runtime cannot keep the process alive.
pub(crate) fn watch() -> io::Result<CancellationToken> {
    // A write beyond the size limit of files then fails, instead of ending the process.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGXFSZ])?;
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    let cancellation = CancellationToken::new();
    let first = cancellation.clone();
    thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            if signal == SIGXFSZ || (signal == SIGINT && end_turn()) {
                continue;
            }
            if first.is_cancelled() {
                #[expect(
                    clippy::exit,
                    reason = "a second signal ends the process without waiting"
                )]
                std::process::exit(exit::CANCELLED.code());
            }
            first.cancel();
        }
    })?;
    Ok(cancellation)
}

/// The turn of a chat that Ctrl-C ends.
static TURN: Mutex<Option<CancellationToken>> = Mutex::new(None);

/// While it exists, the first Ctrl-C ends a turn, and not the program.
#[must_use]
pub(crate) struct TurnGuard(());

impl TurnGuard {
    pub(crate) fn new(turn: &CancellationToken) -> Self {
        *TURN.lock() = Some(turn.clone());
        Self(())
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        *TURN.lock() = None;
    }
}

/// Ends the turn, if there is one that has not been ended.
fn end_turn() -> bool {
    let turn = TURN.lock();
    let running = turn.as_ref().filter(|turn| !turn.is_cancelled());
    running.inspect(|turn| turn.cancel()).is_some()
}

/// Whether this process was started with a signal ignored, as far as the system reports it.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

//! Ctrl-C and its kin.

use std::{io, thread};

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use toolcrib_core::CancellationToken;

use crate::exit;

/// From here on SIGINT and SIGTERM no longer kill the process by themselves: the first one
/// cancels, the second ends the process at once.
///
/// They are heard by a thread of their own, so that not even a runtime that is stuck can keep the
/// process alive.
pub(crate) fn watch() -> io::Result<CancellationToken> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let cancellation = CancellationToken::new();
    let first = cancellation.clone();
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut heard = signals.forever();
        if heard.next().is_some() {
            first.cancel();
        }
        if heard.next().is_some() {
            #[expect(clippy::exit, reason = "whoever asks twice is not to wait for anything")]
            std::process::exit(exit::CANCELLED.code());
        }
    })?;
    Ok(cancellation)
}

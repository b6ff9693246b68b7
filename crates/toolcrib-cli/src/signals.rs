//! Ctrl-C and its kin.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use toolcrib_core::CancellationToken;

use crate::exit;

/// The signals that ask a program to end.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From here on they no longer kill the process by themselves. Needs a runtime's context.
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The first one cancels; the second ends the process at once.
    pub(crate) fn watch(mut self) -> CancellationToken {
        let cancellation = CancellationToken::new();
        let first = cancellation.clone();
        tokio::spawn(async move {
            self.next().await;
            first.cancel();
            self.next().await;
            // Whoever asks twice is not to wait for anything.
            std::process::exit(exit::CANCELLED.code());
        });
        cancellation
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

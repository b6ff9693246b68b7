use std::sync::Arc;

use parking_lot::Mutex;

use tokio::{io::AsyncReadExt as _, process::ChildStderr, task::JoinHandle, time::timeout};

use super::{
    running::{DRAIN, PIECE},
    tail::Tail,
};

/// The number of bytes kept of the end of a program's stderr during a dialog: 8 KiB.
pub const STDERR_TAIL_BYTES: usize = 8 * 1024;

/// Reads stderr in the background, so that the program never waits for a reader.
#[derive(Debug)]
pub(super) struct Stderr {
    tail: Arc<Mutex<Tail>>,
    reading: Option<JoinHandle<()>>,
}

impl Stderr {
    pub(super) fn new(pipe: Option<ChildStderr>) -> Self {
        let tail = Arc::new(Mutex::new(Tail::new(STDERR_TAIL_BYTES)));
        let reading = pipe.map(|pipe| tokio::spawn(read(pipe, Arc::clone(&tail))));
        Self { tail, reading }
    }

    pub(super) fn tail(&self) -> Vec<u8> {
        let tail = self.tail.lock();
        tail.bytes().iter().copied().collect()
    }

    /// Reads the rest of the pipe after its writers have ended, and closes it.
    pub(super) async fn end(&mut self) {
        if let Some(reading) = &mut self.reading {
            // A stray process may have the pipe open.
            if timeout(DRAIN, &mut *reading).await.is_err() {
                reading.abort();
            }
            self.reading = None;
        }
    }
}

impl Drop for Stderr {
    fn drop(&mut self) {
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }
}

async fn read(mut pipe: ChildStderr, tail: Arc<Mutex<Tail>>) {
    let mut piece = vec![0; PIECE];
    loop {
        // A read error counts as the end.
        let count = pipe.read(&mut piece).await.unwrap_or(0);
        if count == 0 {
            return;
        }
        let came = piece.get(..count).unwrap_or_default();
        tail.lock().push(came);
    }
}

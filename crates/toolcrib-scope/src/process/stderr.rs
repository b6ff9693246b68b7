use std::sync::{Arc, Mutex, PoisonError};

use tokio::{io::AsyncReadExt as _, process::ChildStderr, task::JoinHandle, time::timeout};

use super::{
    running::{DRAIN, PIECE},
    tail::Tail,
};

/// How much is kept of the end of what a program writes to stderr while it is talked with: 8 KiB.
pub const STDERR_TAIL_BYTES: usize = 8 * 1024;

/// Reads what a program complains of, whoever asks for it or not, so that it never waits to be heard.
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
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.bytes().iter().copied().collect()
    }

    /// Reads what is left in the pipe once nobody writes to it, and closes it.
    pub(super) async fn end(&mut self) {
        if let Some(reading) = &mut self.reading {
            // A stray may hold the pipe.
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
        // An error of a pipe is its end, too.
        let count = pipe.read(&mut piece).await.unwrap_or(0);
        if count == 0 {
            return;
        }
        let came = piece.get(..count).unwrap_or_default();
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(came);
    }
}

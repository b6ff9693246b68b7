use std::sync::Arc;

use parking_lot::Mutex;

use tokio::{io::AsyncReadExt as _, process::ChildStderr, task::JoinHandle, time::timeout};

use super::{
    running::{DRAIN, PIECE},
    tail::Tail,
};

/// The number of bytes kept of the end of a program's stderr during a dialog: 8 KiB.
pub const STDERR_TAIL_BYTES: usize = 8 * 1024;

/// Receives stderr as it is written.
pub(super) type Listener = Box<dyn FnMut(&[u8]) + Send>;

/// The end of stderr, and the receiver of all of it.
struct Output {
    tail: Tail,
    listener: Option<Listener>,
}

/// Reads stderr in the background, so that the program never waits for a reader.
pub(super) struct Stderr {
    output: Arc<Mutex<Output>>,
    reading: Option<JoinHandle<()>>,
}

impl Output {
    fn push(&mut self, bytes: &[u8]) {
        self.tail.push(bytes);
        if let Some(listener) = &mut self.listener {
            listener(bytes);
        }
    }
}

impl Stderr {
    pub(super) fn new(pipe: Option<ChildStderr>) -> Self {
        let output = Output { tail: Tail::new(STDERR_TAIL_BYTES), listener: None };
        let output = Arc::new(Mutex::new(output));
        let reading = pipe.map(|pipe| tokio::spawn(read(pipe, Arc::clone(&output))));
        Self { output, reading }
    }

    pub(super) fn tail(&self) -> Vec<u8> {
        let output = self.output.lock();
        output.tail.bytes().iter().copied().collect()
    }

    /// Sets the receiver, which receives the present tail first.
    pub(super) fn listen(&self, mut listener: Listener) {
        let mut output = self.output.lock();
        let so_far: Vec<u8> = output.tail.bytes().iter().copied().collect();
        listener(&so_far);
        output.listener = Some(listener);
    }

    /// Reads the rest of the pipe after its writers have ended, and closes it. Returns whether it was
    /// open.
    pub(super) async fn end(&mut self) -> bool {
        let Some(reading) = &mut self.reading else { return false };
        // A stray process may have the pipe open.
        if timeout(DRAIN, &mut *reading).await.is_err() {
            reading.abort();
        }
        self.reading = None;
        true
    }

    /// Adds bytes as if the program had written them.
    pub(super) fn push(&self, bytes: &[u8]) {
        self.output.lock().push(bytes);
    }
}

impl Drop for Stderr {
    fn drop(&mut self) {
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }
}

toolcrib_core::__internal::debug_fields!(Stderr);

async fn read(mut pipe: ChildStderr, output: Arc<Mutex<Output>>) {
    let mut piece = vec![0; PIECE];
    loop {
        // A read error counts as the end.
        let count = pipe.read(&mut piece).await.unwrap_or(0);
        if count == 0 {
            return;
        }
        let came = piece.get(..count).unwrap_or_default();
        output.lock().push(came);
    }
}

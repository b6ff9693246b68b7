//! Bytes that are read piece by piece, taken apart into lines.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How much room there is for what is read next, at least.
const READ_BYTES: usize = 16 * 1024;

/// What was read of lines, and is not taken yet.
#[derive(Default)]
pub(crate) struct LineBuffer {
    buffer: BytesMut,
    /// How much of the buffer holds no end of a line.
    scanned: usize,
}

impl LineBuffer {
    /// A line that has been read whole, without its end.
    pub(crate) fn line(&mut self) -> Option<BytesMut> {
        let unseen = self.buffer.get(self.scanned..).unwrap_or_default();
        let Some(end) = unseen.iter().position(|byte| *byte == b'\n') else {
            self.scanned = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.scanned + end + 1);
        self.scanned = 0;
        line.truncate(line.len().saturating_sub(1));
        Some(line)
    }

    /// How many bytes there are, once there is no whole line among them.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// What there is of a line that has not been read whole.
    #[cfg(feature = "gateway")]
    pub(crate) fn part(&mut self) -> BytesMut {
        self.scanned = 0;
        self.buffer.split()
    }

    /// Reads on; how many bytes, none at the end. Dropped before, it has read nothing.
    pub(crate) async fn fill(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        self.buffer.reserve(READ_BYTES);
        from.read_buf(&mut self.buffer).await
    }
}

//! Splits the output of a running program into lines, as it comes.

/// The line that has begun.
pub(crate) struct LineSplitter {
    begun: Vec<u8>,
    /// The bytes of the line, of which only the first are kept.
    length: usize,
    most_bytes: usize,
}

impl LineSplitter {
    /// Of a longer line, only this number of bytes are kept.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { begun: Vec::new(), length: 0, most_bytes }
    }

    /// Whether the last line has begun and not ended.
    pub(crate) fn has_begun(&self) -> bool {
        self.length > 0
    }

    /// The beginning of that line.
    pub(crate) fn begun(&self) -> &[u8] {
        &self.begun
    }

    /// Passes each line that ends in the piece, without its line feed, and its whole length.
    pub(crate) fn push(&mut self, piece: &[u8], mut on_line: impl FnMut(&[u8], usize)) {
        let mut parts = piece.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            let room = self.most_bytes.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(part.get(..room).unwrap_or(part));
            self.length += part.len();
            if parts.peek().is_some() {
                on_line(&self.begun, self.length);
                self.begun.clear();
                self.length = 0;
            }
        }
    }
}

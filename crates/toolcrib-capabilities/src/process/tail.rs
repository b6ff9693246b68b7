use std::collections::VecDeque;

/// The last bytes of a stream, up to a limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tail {
    bytes: VecDeque<u8>,
    limit: usize,
}

impl Tail {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: VecDeque::new(), limit }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let last = bytes.len().saturating_sub(self.limit);
        self.bytes.extend(bytes.iter().skip(last));
        let over = self.bytes.len().saturating_sub(self.limit);
        self.bytes.drain(..over);
    }

    pub(super) fn bytes(&self) -> &VecDeque<u8> {
        &self.bytes
    }
}

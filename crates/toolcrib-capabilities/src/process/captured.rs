use super::tail::Tail;

/// The number of bytes kept of the end of a truncated output.
pub const TAIL_BYTES: usize = 4096;

/// One output of a program: its head up to a cap and, of the rest, the last [`TAIL_BYTES`] bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedOutput {
    head: Vec<u8>,
    tail: Tail,
    total: u64,
    cap: usize,
}

impl CapturedOutput {
    pub(super) fn new(cap: usize) -> Self {
        Self { head: Vec::new(), tail: Tail::new(TAIL_BYTES), total: 0, cap }
    }

    /// Adds bytes; returns the part of them that belongs to the head.
    pub(super) fn push<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        self.total += bytes.len() as u64;
        let room = self.cap - self.head.len();
        let (kept, beyond) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(kept);
        self.tail.push(beyond);
        kept
    }

    /// The head, up to the cap.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The number of bytes written in total.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether the output is longer than the head.
    pub fn is_truncated(&self) -> bool {
        self.total > self.head.len() as u64
    }

    /// The end, at most this number of bytes, and [`TAIL_BYTES`] of a truncated output. The last lines of
    /// stderr usually say why a program failed.
    pub fn last(&self, bytes: usize) -> Vec<u8> {
        // Bytes between head and tail are missing, so one does not continue the other.
        let tail = self.tail.bytes();
        let contiguous = self.total == (self.head.len() + tail.len()) as u64;
        let head = if contiguous { self.head.as_slice() } else { &[] };
        let skipped = (head.len() + tail.len()).saturating_sub(bytes);
        head.iter().chain(tail).skip(skipped).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(cap: usize, chunks: &[&[u8]]) -> CapturedOutput {
        let mut captured = CapturedOutput::new(cap);
        for chunk in chunks {
            captured.push(chunk);
        }
        captured
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let whole = captured(6, &[b"abc", b"", b"def"]);
        assert_eq!((whole.head(), whole.total(), whole.is_truncated()), (&b"abcdef"[..], 6, false));
        assert_eq!(whole.last(4), b"cdef");
        assert_eq!(whole.last(100), b"abcdef");
    }

    #[test]
    fn of_what_does_not_fit_head_and_tail_are_kept() {
        let mut cut = CapturedOutput::new(4);
        assert_eq!(cut.push(b"abc"), b"abc");
        assert_eq!(cut.push(b"def"), b"d");
        assert_eq!((cut.head(), cut.total(), cut.is_truncated()), (&b"abcd"[..], 6, true));
        assert_eq!(cut.last(3), b"def", "nothing is missing in between");
        let long: Vec<u8> = (0..=255).cycle().take(3 * TAIL_BYTES + 7).collect();
        assert_eq!(cut.push(&long), b"");
        assert_eq!(cut.total(), 6 + long.len() as u64);
        assert_eq!(cut.last(usize::MAX), &long[long.len() - TAIL_BYTES..]);
        assert_eq!(cut.last(2), &long[long.len() - 2..]);
        cut.push(b"xy");
        assert_eq!(cut.last(3), [long[long.len() - 1], b'x', b'y']);
        assert_eq!(cut.last(usize::MAX).len(), TAIL_BYTES);
    }
}

//! Finds lines that report failures in an output while it is written, of which only the beginning and the
//! end stay in memory.

use super::shown::{LINE_CHARS, reports_failure};

/// The most failures that are kept.
const MOST_FAILURES: usize = 500;

/// The bytes of a line that are kept: enough for its shown characters, with the whole of a secret at their
/// end.
const LINE_BYTES: usize = 4 * LINE_CHARS + 4096;

/// The lines of one output.
pub(super) struct OutputScan {
    /// The bytes that stay in memory; no line that ends within them is kept here.
    kept_bytes: u64,
    bytes: u64,
    /// The complete lines so far.
    complete: usize,
    begun: Vec<u8>,
    is_begun: bool,
    failures: Vec<(usize, Vec<u8>)>,
}

impl OutputScan {
    pub(super) fn new(kept_bytes: usize) -> Self {
        Self {
            kept_bytes: kept_bytes as u64,
            bytes: 0,
            complete: 0,
            begun: Vec::new(),
            is_begun: false,
            failures: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        let mut lines = piece.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = lines.next() {
            let room = LINE_BYTES.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(part.get(..room).unwrap_or(part));
            self.is_begun |= !part.is_empty();
            self.bytes += part.len() as u64;
            if lines.peek().is_some() {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        self.bytes += 1;
        self.complete += 1;
        if self.bytes > self.kept_bytes && self.failures.len() < MOST_FAILURES {
            let line = String::from_utf8_lossy(&self.begun);
            if reports_failure(&line.chars().take(LINE_CHARS).collect::<String>()) {
                self.failures.push((self.complete, self.begun.clone()));
            }
        }
        self.begun.clear();
        self.is_begun = false;
    }

    /// The number of all lines.
    pub(super) fn lines(&self) -> usize {
        self.complete + usize::from(self.is_begun)
    }

    /// The lines that report failures and are not in memory otherwise, by number.
    pub(super) fn failures(&self) -> &[(usize, Vec<u8>)] {
        &self.failures
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_and_failures_do_not_depend_on_the_pieces(
            lines in prop::collection::vec((any::<bool>(), 0_usize..30), 0..40),
            kept in 0_usize..200,
            size in 1_usize..50,
            ends in any::<bool>(),
        ) {
            let line = |(fails, length): &(bool, usize)| {
                format!("{}{}", if *fails { "error " } else { "" }, "x".repeat(*length))
            };
            let lines: Vec<_> = lines.iter().map(line).collect();
            let mut text = lines.join("\n");
            if ends && !lines.is_empty() {
                text.push('\n');
            }
            let mut scan = OutputScan::new(kept);
            text.as_bytes().chunks(size).for_each(|piece| scan.push(piece));
            prop_assert_eq!(scan.lines(), text.lines().count());
            let mut end = 0;
            let complete = text.matches('\n').count();
            let expected: Vec<_> = text.lines().enumerate().take(complete).filter_map(|(at, line)| {
                end += line.len() + 1;
                (end > kept && line.starts_with("error")).then(|| (at + 1, line.as_bytes().to_vec()))
            }).collect();
            prop_assert_eq!(scan.failures(), expected);
        }
    }
}

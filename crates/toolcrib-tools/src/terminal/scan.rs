//! Finds lines that report failures in an output while it is written, of which only the beginning and the
//! end stay in memory.

use super::shown::{LINE_CHARS, reports_failure};
use crate::command::lines::LineSplitter;

/// The most failures that are kept.
const MOST_FAILURES: usize = 500;

/// The bytes of a line that are kept: enough for its shown characters, with the whole of a secret at their
/// end.
const LINE_BYTES: usize = 4 * LINE_CHARS + 4096;

/// The lines of one output.
pub(super) struct OutputScan {
    splitter: LineSplitter,
    /// The bytes that stay in memory; no line that ends within them is kept here.
    kept_bytes: usize,
    /// The bytes of the complete lines so far, and their number.
    bytes: usize,
    complete: usize,
    /// The first lines that report failures, and the number of all such lines.
    failures: Vec<FailureLine>,
    failed: usize,
}

/// A line that reports a failure.
pub(super) struct FailureLine {
    /// Its number, from 1.
    pub(super) number: usize,
    /// The position after it in the output, in bytes.
    pub(super) end: usize,
    /// Its beginning.
    pub(super) bytes: Vec<u8>,
}

impl OutputScan {
    pub(super) fn new(kept_bytes: usize) -> Self {
        let splitter = LineSplitter::new(LINE_BYTES);
        Self { splitter, kept_bytes, bytes: 0, complete: 0, failures: Vec::new(), failed: 0 }
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        let Self { splitter, kept_bytes, bytes, complete, failures, failed } = self;
        splitter.push(piece, |line, length| {
            *bytes = bytes.saturating_add(length + 1);
            *complete += 1;
            if reports_failure(&String::from_utf8_lossy(line)) {
                *failed += 1;
                if *bytes > *kept_bytes && failures.len() < MOST_FAILURES {
                    let (number, end, bytes) = (*complete, *bytes, line.to_vec());
                    failures.push(FailureLine { number, end, bytes });
                }
            }
        });
    }

    /// The number of all lines.
    pub(super) fn lines(&self) -> usize {
        self.complete + usize::from(self.splitter.has_begun())
    }

    /// The number of all lines that report failures.
    pub(super) fn failed(&self) -> usize {
        let begun = reports_failure(&String::from_utf8_lossy(self.splitter.begun()));
        self.failed + usize::from(begun)
    }

    /// The lines that report failures and are not in memory otherwise, by number.
    pub(super) fn failures(&self) -> &[FailureLine] {
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
            let found = scan.failures().iter().map(|line| (line.number, line.bytes.clone()));
            prop_assert_eq!(found.collect::<Vec<_>>(), expected);
            let failed = text.lines().filter(|line| line.starts_with("error")).count();
            prop_assert_eq!(scan.failed(), failed);
        }
    }
}

//! What a running program prints, for those who watch.

use toolcrib_core::{Audience, Progress, ToolContext};
use toolcrib_scope::process::Output;

/// How much of stdout is told while the program runs: it is there to show that something happens.
const TOLD_BYTES: usize = 8 * 1024;

/// Tells the lines of stdout, each as it is complete.
pub(super) struct Lines<'a> {
    cx: &'a ToolContext,
    /// The beginning of a line that is not complete.
    begun: Vec<u8>,
    left: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn to(cx: &'a ToolContext) -> Self {
        Self { cx, begun: Vec::new(), left: TOLD_BYTES }
    }

    pub(super) fn push(&mut self, output: Output, piece: &[u8]) {
        let piece = piece.get(..self.left.min(piece.len())).unwrap_or_default();
        if output != Output::Stdout || piece.is_empty() {
            return;
        }
        self.left -= piece.len();
        let mut lines = piece.split(|byte| *byte == b'\n');
        // What follows the last line end is no line yet.
        let rest = lines.next_back().unwrap_or_default();
        for line in lines {
            self.begun.extend_from_slice(line);
            self.tell();
        }
        self.begun.extend_from_slice(rest);
    }

    fn tell(&mut self) {
        let line = String::from_utf8_lossy(&self.begun);
        // A program's colours and cursor movements are not for the terminal of who watches.
        let message: String = line.chars().filter(|c| !c.is_control()).collect();
        if !message.is_empty() {
            self.cx.progress(Progress {
                audience: Audience::Dashboard,
                ..Progress::internal(message)
            });
        }
        self.begun.clear();
    }
}

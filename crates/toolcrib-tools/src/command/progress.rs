//! The output of a running program as progress, for dashboards.

use toolcrib_capabilities::process::Output;
use toolcrib_core::{Audience, Progress, ToolContext};

/// The limit of stdout that becomes progress: enough to show activity.
const TOLD_BYTES: usize = 8 * 1024;

/// Tells the lines of stdout, each as it is complete.
pub(crate) struct Lines<'a> {
    cx: &'a ToolContext,
    /// The beginning of a line that is not complete.
    begun: Vec<u8>,
    left: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn to(cx: &'a ToolContext) -> Self {
        Self { cx, begun: Vec::new(), left: TOLD_BYTES }
    }

    pub(crate) fn push(&mut self, output: Output, piece: &[u8]) {
        let piece = piece.get(..self.left.min(piece.len())).unwrap_or_default();
        if output != Output::Stdout || piece.is_empty() {
            return;
        }
        self.left -= piece.len();
        let mut lines = piece.split(|byte| *byte == b'\n');
        // The text after the last line end is not a complete line.
        let rest = lines.next_back().unwrap_or_default();
        for line in lines {
            self.begun.extend_from_slice(line);
            self.tell();
        }
        self.begun.extend_from_slice(rest);
    }

    fn tell(&mut self) {
        let line = String::from_utf8_lossy(&self.begun);
        // A program's colors and cursor movements are not for the terminal of who watches.
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

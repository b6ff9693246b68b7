//! Bars: sums as a picture, in the terminal and on a page.

use serde::Serialize;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{
    print::say,
    terminal::Stream,
    text::{DIM, GOOD, safe},
};

/// The width without a terminal, in columns.
const WIDTH: usize = 80;

/// The widest chart, and the shortest bar of the largest value, in columns.
const WIDEST: usize = 120;
const SHORTEST: usize = 6;

/// A chart of horizontal bars.
#[derive(Serialize)]
pub(super) struct Chart {
    /// The subject of a line: `Day`.
    pub(super) title: &'static str,
    /// The unit of the length of a bar: `tokens`.
    pub(super) measure: &'static str,
    pub(super) rows: Vec<Row>,
}

/// A line of a chart.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Row {
    /// A bar.
    Bar {
        name: String,
        /// Its length, from 0 to 1 for the largest.
        share: f64,
        /// The value with its unit.
        value: String,
        /// More of the same sum, in words.
        details: String,
    },
    /// Lines without a value.
    Gap { words: String },
}

impl Chart {
    /// Prints it at the width of the terminal.
    pub(super) fn print(&self) {
        self.lines(Stream::Out.columns().unwrap_or(WIDTH)).iter().for_each(|line| say!("{line}"));
    }

    /// Name, bar and value of each row share a line of at most `width` columns; the details follow.
    fn lines(&self, width: usize) -> Vec<String> {
        let width = width.min(WIDEST);
        let bars = self.rows.iter().filter_map(|row| match row {
            Row::Bar { name, value, .. } => Some((safe(name).width(), value.width())),
            Row::Gap { .. } => None,
        });
        let (names, values) =
            bars.fold((0, 0), |(name, value), (n, v)| (name.max(n), value.max(v)));
        let names = names.min((width / 3).max(4));
        let room = width.saturating_sub(names + values + 4).max(SHORTEST);
        let mut lines = Vec::new();
        for row in &self.rows {
            match row {
                Row::Bar { name, share, value, details } => {
                    let name = fitted(&safe(name), names);
                    let pad = " ".repeat(names.saturating_sub(name.width()));
                    let bar = bar(*share, room);
                    let after = " ".repeat(room.saturating_sub(bar.width()));
                    let gap = " ".repeat(values.saturating_sub(value.width()));
                    lines.push(format!("{name}{pad}  {GOOD}{bar}{GOOD:#}{after}  {gap}{value}"));
                    lines.push(format!("    {DIM}{details}{DIM:#}"));
                }
                Row::Gap { words } => lines.push(format!("    {DIM}{words}{DIM:#}")),
            }
        }
        lines
    }
}

/// A bar in eighths of a column. A value above 0 has at least one.
fn bar(share: f64, room: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 0 and eight times the width of a terminal"
    )]
    let eighths = (share.clamp(0.0, 1.0) * room as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), PARTS.get(eighths % 8).copied().unwrap_or_default())
}

/// A name in a number of columns.
fn fitted(name: &str, columns: usize) -> String {
    if name.width() <= columns {
        return name.to_owned();
    }
    let mut short = String::new();
    let mut filled = 1;
    for c in name.chars() {
        filled += c.width().unwrap_or_default();
        if filled > columns {
            break;
        }
        short.push(c);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(name: &str, share: f64, value: &str) -> Row {
        Row::Bar { name: name.into(), share, value: value.into(), details: "2 calls".into() }
    }

    #[test]
    fn bars_fill_the_width_and_the_smallest_is_seen() {
        let rows = vec![
            row("2026-11-27", 1.0, "12,000 tokens"),
            Row::Gap { words: "1 day without use".into() },
            row("2026-11-29", 0.0001, "1 token"),
            row("東京東京東京東京東京東京東京", 0.0, "0 tokens"),
        ];
        let lines = Chart { title: "Day", measure: "tokens", rows }.lines(60).join("\n");
        insta::assert_snapshot!(anstream::adapter::strip_str(&lines));
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(
            width in 40_usize..200, names in prop::collection::vec("\\PC{0,60}", 1..5), share in 0.0..1.0,
        ) {
            let rows = names.iter().map(|name| row(name, share, "1,234 tokens")).collect();
            for line in (Chart { title: "Tool", measure: "tokens", rows }).lines(width) {
                let line = anstream::adapter::strip_str(&line).to_string();
                prop_assert!(line.width() <= width.min(WIDEST), "{line}");
            }
        }
    }
}

//! Tables, aligned in the width of the terminal.

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::{super::wrap::Wrap, FAINT, HEADING, inline::styled};

/// A longer table is continued as another.
const MOST_ROWS: usize = 200;
const MOST_COLUMNS: usize = 32;

/// The columns between two cells.
const GAP: usize = 2;

/// The narrowest cell, in columns.
const NARROWEST: usize = 6;

/// The rows of a table, until it is complete.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    /// The lines as they were written.
    source: Vec<String>,
    /// Whether the first row is a heading.
    has_heading: bool,
    /// Whether a column is aligned at its right.
    at_right: Vec<bool>,
}

impl Table {
    /// Adds a line of Markdown. Returns whether there was room for it.
    pub(super) fn add(&mut self, line: &str) -> bool {
        let mut cells = cells(line);
        cells.truncate(MOST_COLUMNS);
        if self.rows.len() == 1 && !self.has_heading && cells.iter().all(|cell| is_rule(cell)) {
            self.has_heading = true;
            let is_right = |cell: &String| cell.ends_with(':') && !cell.starts_with(':');
            self.at_right = cells.iter().map(is_right).collect();
            return true;
        }
        if self.rows.len() == MOST_ROWS {
            return false;
        }
        self.rows.push(cells);
        self.source.push(line.to_owned());
        true
    }

    /// The lines of the table for a width. Lines without a heading are text.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        if !self.has_heading {
            return self.source.clone();
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| plain(cell).width()).max().unwrap_or_default()
        };
        let mut widths: Vec<_> = (0..columns).map(widest).collect();
        let room = width.saturating_sub(GAP * columns.saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > NARROWEST) else {
                break;
            };
            *widest -= 1;
        }
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let is_heading = number == 0;
            let style = if is_heading { HEADING } else { Style::new() };
            lines.extend(row_lines(row, &widths, &self.at_right, style));
            if is_heading {
                let total = widths.iter().sum::<usize>() + GAP * columns.saturating_sub(1);
                lines.push(format!("{FAINT}{}{FAINT:#}", "─".repeat(total)));
            }
        }
        lines
    }
}

/// The lines of one row.
fn row_lines(row: &[String], widths: &[usize], at_right: &[bool], style: Style) -> Vec<String> {
    let cells: Vec<Vec<String>> = widths
        .iter()
        .enumerate()
        .map(|(column, width)| {
            let mut wrap = Wrap::default();
            let mut text = String::new();
            styled(row.get(column).map_or("", String::as_str), style, None, &mut text);
            wrap.push(&text, *width);
            wrap.end_word(*width);
            wrap.take().split('\n').map(str::to_owned).collect()
        })
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    let line = |number: usize| {
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let part = cell.get(number).map_or("", String::as_str);
            let free = " ".repeat(width.saturating_sub(visible(part).width()));
            let parts = match at_right.get(column) {
                Some(true) => [&free, part],
                _ => [part, &free],
            };
            line.push_str(&parts.concat());
            line.push_str(&" ".repeat(GAP));
        }
        line.truncate(line.trim_end_matches(' ').len());
        line
    };
    (0..height).map(line).collect()
}

/// The cells of a line.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut cells = vec![String::new()];
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, cells.last_mut()) {
            ('\\', Some(cell)) if chars.peek() == Some(&'|') => {
                chars.next();
                cell.push('|');
            }
            ('|', _) => {
                // The last one ends the line.
                if chars.peek().is_some() {
                    cells.push(String::new());
                }
            }
            (c, Some(cell)) => cell.push(c),
            (_, None) => {}
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn is_rule(cell: &str) -> bool {
    cell.contains('-') && cell.chars().all(|c| matches!(c, '-' | ':'))
}

/// A cell's text without markup.
fn plain(cell: &str) -> String {
    let mut text = String::new();
    styled(cell, Style::new(), None, &mut text);
    visible(&text)
}

/// A text without escape sequences.
fn visible(text: &str) -> String {
    let mut in_escape = false;
    text.chars()
        .filter(|c| {
            let was = in_escape;
            in_escape = if in_escape { !c.is_ascii_alphabetic() } else { *c == '\u{1b}' };
            !(was || in_escape)
        })
        .collect()
}

//! A difference of texts with line numbers, for a person.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::fields::{cut, visible};

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const DIM: Style = Style::new().dimmed();

/// A difference in the unified format as lines of at most `width` columns: the number in the old text,
/// that in the new one, a sign, and the line. Invisible, bidirectional and control characters are
/// written as `\u{…}`.
pub(super) fn shown_difference(difference: &str, width: usize) -> String {
    let (mut old, mut new) = (0_usize, 0_usize);
    let columns = longest_number(difference).max(2);
    let room = width.saturating_sub(4 + 2 * columns + 4).max(16);
    let mut lines = String::new();
    let mut is_first = true;
    for line in difference.lines() {
        if let Some((of_old, of_new)) = hunk(line) {
            (old, new) = (of_old, of_new);
            if !is_first {
                let _ = writeln!(lines, "    {DIM}…{DIM:#}");
            }
            is_first = false;
            continue;
        }
        let (style, sign, text) = match line.split_at_checked(1) {
            Some(("+", text)) => (ADDED, '+', text),
            Some(("-", text)) => (REMOVED, '-', text),
            Some((" ", text)) => (Style::new(), ' ', text),
            // An empty line of the context, and the remark on the end of a file.
            None => (Style::new(), ' ', ""),
            Some(_) => {
                let _ = writeln!(lines, "    {DIM}({}){DIM:#}", shown(line));
                continue;
            }
        };
        let number = |is_of: bool, number: usize| match is_of {
            true => format!("{number:>columns$}"),
            false => " ".repeat(columns),
        };
        let (of_old, of_new) = (number(sign != '+', old), number(sign != '-', new));
        for (at, row) in cut(&shown(text), room).into_iter().enumerate() {
            let (numbers, sign) = match at {
                0 => (format!("{of_old} {of_new}"), sign),
                _ => (" ".repeat(2 * columns + 1), '│'),
            };
            let _ = writeln!(lines, "    {DIM}{numbers}{DIM:#} {style}{sign} {row}{style:#}");
        }
        old += usize::from(sign != '+');
        new += usize::from(sign != '-');
    }
    lines
}

fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    visible(text, &mut shown, false);
    shown
}

/// The first lines of a hunk, from its header: `@@ -12,3 +12,4 @@`.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let mut ranges = line.strip_prefix("@@ -")?.split(' ');
    let first = |range: &str| range.split(',').next()?.parse().ok();
    Some((first(ranges.next()?)?, first(ranges.next()?.strip_prefix('+')?)?))
}

/// The digits of the largest line number, at most.
fn longest_number(difference: &str) -> usize {
    let hunks = difference.lines().filter_map(hunk);
    let first = hunks.map(|(old, new)| old.max(new)).max().unwrap_or_default();
    (first + difference.lines().count()).to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_numbers_and_keep_their_spaces() {
        let difference = "@@ -9,3 +9,3 @@\n fn a() {\n-    return 1\n+     return \u{202e}2\n }\n\
            @@ -120,1 +120,2 @@\n x\n+a line that is much longer than the terminal is wide\n";
        let shown = shown_difference(difference, 44);
        insta::assert_snapshot!(anstream::adapter::strip_str(&shown), @r"
          9   9   fn a() {
         10     -     return 1
             10 +      return \u{202e}2
         11  11   }
        …
        120 120   x
            121 + a line that is much longer 
                │ than the terminal is wide
        ");
    }
}

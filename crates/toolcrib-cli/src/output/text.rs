//! Small texts.

use std::{borrow::Cow, fmt::Write as _, time::Duration};

use anstyle::{AnsiColor, Style};
use serde_json::Value;

pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const WARN: Style = AnsiColor::Yellow.on_default();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const STRONG: Style = Style::new().bold();

/// `1 step`, `2 steps`.
pub(super) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// `0.4 ms`, `12 ms`, `3.2 s`.
pub(super) fn duration(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1000.0;
    match ms {
        ..1.0 => format!("{ms:.1} ms"),
        ..1000.0 => format!("{ms:.0} ms"),
        _ => format!("{:.1} s", ms / 1000.0),
    }
}

/// A text that cannot drive the terminal.
pub(super) fn safe(text: &str) -> Cow<'_, str> {
    let drives = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(drives) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if drives(c) {
            let _ = write!(safe, "{}", c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// A text on one line of at most so many characters.
pub(super) fn one_line(text: &str, longest: usize) -> String {
    let words = text.split_whitespace();
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // Enough is enough; a result can be large.
        if line.len() > longest * 4 {
            break;
        }
    }
    let line = safe(&line);
    if line.chars().count() <= longest {
        return line.into_owned();
    }
    let mut short: String = line.chars().take(longest.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// A call's arguments on one line.
pub(super) fn arguments(args: &Value) -> String {
    one_line(&args.to_string(), 120)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_on_their_line_and_off_the_terminal() {
        assert_eq!(one_line("a\n b\t\u{1b}[31mc", 40), "a b \\u{1b}[31mc");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(safe("line\nline"), "line\nline");
        assert_eq!(count(1, "step") + &count(2, "step"), "1 step2 steps");
        assert_eq!(duration(Duration::from_micros(450)), "0.5 ms");
        assert_eq!(duration(Duration::from_millis(12)), "12 ms");
        assert_eq!(duration(Duration::from_millis(3210)), "3.2 s");
    }
}

//! Text formatting.

use std::{fmt::Write as _, path::Path, time::Duration};

use anstyle::{AnsiColor, Style};
use serde_json::Value;
pub(super) use toolcrib_core::__internal::counted as count;
use toolcrib_core::__internal::{is_hidden, marked};
use toolcrib_project::{McpServer, Project};

pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const WARN: Style = AnsiColor::Yellow.on_default();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const STRONG: Style = Style::new().bold();

/// A suffix to a number of tools if servers are unavailable.
pub(super) fn servers_away(away: usize) -> String {
    if away == 0 { String::new() } else { format!(", {} unavailable", count(away, "server")) }
}

/// `7`, `1,234`, `209,715,200`.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
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

/// Text that cannot control the terminal and hides nothing: control, bidirectional and invisible
/// characters are escaped as `\u{…}`.
pub(crate) fn safe(text: &str) -> String {
    let mut cleaner = Cleaner::default();
    let mut safe = cleaner.push(text);
    safe.push_str(&cleaner.finish());
    safe
}

/// [`safe`] for text that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    last: Option<char>,
    /// A character whose meaning depends on the next one.
    held: Option<char>,
}

impl Cleaner {
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut safe = String::with_capacity(piece.len());
        for c in piece.chars() {
            if let Some(held) = self.held.replace(c) {
                self.put(held, Some(c), &mut safe);
            }
            if !matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}') {
                self.held = None;
                self.put(c, None, &mut safe);
            }
        }
        safe
    }

    pub(super) fn finish(&mut self) -> String {
        let mut safe = String::new();
        if let Some(held) = self.held.take() {
            self.put(held, None, &mut safe);
        }
        self.last = None;
        safe
    }

    fn put(&mut self, c: char, next: Option<char>, safe: &mut String) {
        if is_hidden(self.last, c, next) {
            let _ = write!(safe, "{}", c.escape_unicode());
        } else {
            safe.push(c);
        }
        self.last = Some(c);
    }
}

/// JSON that cannot control the terminal: the same data, with the characters of [`safe`] as JSON
/// escapes.
pub(crate) fn safe_json(json: String) -> String {
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
        return json;
    }
    let mut safe = String::with_capacity(json.len());
    for (c, is_hidden) in marked(&json) {
        // A line feed separates texts; inside a text it is already escaped.
        if is_hidden {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

/// A path as [`safe`] text.
pub(super) fn shown(path: &Path) -> String {
    safe(&path.to_string_lossy())
}

/// A path as one shell word, never read as an option.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = if text.starts_with('-') { format!("./{text}") } else { text.into_owned() };
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A text on one line of at most `longest` characters.
pub(super) fn one_line(text: &str, longest: usize) -> String {
    let words = text.split_whitespace();
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // Stops early: a result can be large.
        if line.len() > longest * 4 {
            break;
        }
    }
    cut(safe(&line), longest)
}

/// A line of at most `longest` characters.
fn cut(line: String, longest: usize) -> String {
    if line.chars().count() <= longest {
        return line;
    }
    let mut short: String = line.chars().take(longest.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// A call's arguments on one line. JSON has no line ends, and its spaces are those of the texts.
pub(super) fn arguments(args: &Value) -> String {
    let json: String = args.to_string().chars().take(121).collect();
    cut(safe(&json), 120)
}

/// The plugin that declares something, if it is not the project itself.
pub(crate) fn of_plugin(plugin: Option<&str>) -> String {
    plugin.map(|plugin| format!(" (plugin `{plugin}`)")).unwrap_or_default()
}

/// The program or address of a server, without secrets; `None` without a client.
pub(crate) fn target(project: &Project, server: &McpServer) -> Option<String> {
    let status = server.client().ok()?.status();
    Some(project.redactor().text(&status.target).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_on_their_line_and_off_the_terminal() {
        assert_eq!(one_line("a\n b\t\u{1b}[31mc", 40), "a b \\u{1b}[31mc");
        assert_eq!(one_line("abcdef", 4), "abc…");
        let args = serde_json::json!({ "old": "    return" });
        assert_eq!(arguments(&args), r#"{"old":"    return"}"#);
        assert_eq!(safe("line\nline"), "line\nline");
        assert_eq!(count(1, "iteration") + &count(2, "iteration"), "1 iteration2 iterations");
        assert_eq!(
            grouped(7) + " " + &grouped(999_999) + " " + &grouped(1_234_567),
            "7 999,999 1,234,567"
        );
        assert_eq!(duration(Duration::from_micros(450)), "0.5 ms");
        assert_eq!(duration(Duration::from_millis(12)), "12 ms");
        assert_eq!(duration(Duration::from_millis(3210)), "3.2 s");
    }

    #[test]
    fn what_nobody_sees_is_shown_and_emoji_stay_whole() {
        assert_eq!(safe("a\u{202e}b\u{2066}c\u{200b}d"), r"a\u{202e}b\u{2066}c\u{200b}d");
        assert_eq!(safe("\u{feff}x\u{e0041}\u{e007f}"), r"\u{feff}x\u{e0041}\u{e007f}");
        assert_eq!(safe("a\u{200d}b\u{fe0f} 1\u{fe0f}2"), r"a\u{200d}b\u{fe0f} 1\u{fe0f}2");
        assert_eq!(safe("👩\u{200d}\u{200d}👧"), r"👩\u{200d}\u{200d}👧");
        let emoji = "👩‍👩‍👧 ❤️ ❤️‍🔥 1️⃣ ©️ naïve 中文";
        assert!(emoji.contains('\u{200d}') && emoji.contains('\u{fe0f}'));
        assert_eq!(safe(emoji), emoji);
    }

    #[test]
    fn json_is_the_same_data_and_drives_nothing() {
        let data = serde_json::json!({ "a\u{9b}": "\u{1b}\u{7f}\u{202e}\u{e0041}\n 👩‍👩‍👧 é" });
        let json = safe_json(serde_json::to_string_pretty(&data).unwrap());
        assert!(!json.contains(['\u{9b}', '\u{7f}', '\u{202e}', '\u{e0041}']), "{json}");
        assert!(json.contains("👩‍👩‍👧 é"), "{json}");
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), data);
    }

    #[test]
    fn paths_are_one_word_for_a_shell() {
        for (path, word) in [
            ("ace/ü", "ace/ü"),
            ("sp ace/ü", "'sp ace/ü'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("-x", "./-x"),
        ] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
    }
}

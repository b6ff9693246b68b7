//! Questions of MCP servers at the terminal. All texts but the server's name are the server's.

use std::fmt::Write as _;

use super::{
    print::note,
    text::{DIM, STRONG, WARN, one_line, safe},
};

/// The limit of lines of a message.
const MOST_LINES: usize = 30;

/// The limit of the characters of a name or description.
const LONGEST: usize = 200;

/// The beginning of each question. Its lines cannot look like ours.
fn question_begins(server: &str, message: &str) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{WARN}MCP server {} asks you{WARN:#}", safe(server));
    let lines = message.lines().filter(|line| !line.trim().is_empty()).take(MOST_LINES);
    for line in lines {
        let _ = writeln!(text, "  {DIM}│{DIM:#} {}", safe(line));
    }
    text
}

/// A question about a URL, whose host is in ASCII.
pub(crate) fn url_asked(server: &str, message: &str, url: &str) -> String {
    let mut text = question_begins(server, message);
    let host = url.split('/').nth(2).unwrap_or_default();
    let _ = writeln!(text, "  {DIM}page{DIM:#}  {}", safe(url));
    let _ = writeln!(text, "  {DIM}host{DIM:#}  {STRONG}{}{STRONG:#}", safe(host));
    text.push_str("Open this page in your browser? [y/N] ");
    text
}

/// A question with a form.
pub(crate) fn form_asked(server: &str, message: &str, fields: &[String]) -> String {
    let mut text = question_begins(server, message);
    if !fields.is_empty() {
        let _ = writeln!(text, "  {DIM}fields{DIM:#}");
    }
    for field in fields {
        let _ = writeln!(text, "    {field}");
    }
    text.push_str("Answer? What you enter goes to this server. [y/N] ");
    text
}

/// A text of a server on one line.
pub(crate) fn asked_text(text: &str) -> String {
    safe(&one_line(text, LONGEST))
}

/// A note about a question.
pub(crate) fn question_note(text: &str) {
    note!("  {text}");
}

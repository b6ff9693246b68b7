//! The questions as they are printed. No line is wider than the terminal.

use std::{fmt::Write as _, io};

use anstyle::{AnsiColor, Style};
use rustix::termios::tcgetwinsize;
use toolcrib_core::{__internal::marked, ApprovalRequest, Clarification, Tool};
use unicode_width::UnicodeWidthStr as _;

use super::{
    ShownCall,
    bounds::Bounds,
    difference::shown_difference,
    fields::{cut, shown_arguments, shown_without},
};

const ASK: Style = AnsiColor::Yellow.on_default().bold();
const STRONG: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The width of a terminal that does not tell its own, and the widest that is used.
const WIDTH: usize = 80;
const WIDEST: usize = 120;

/// The columns of labels.
const LABELS: usize = 9;

/// The width of lines on the terminal, in columns.
pub(super) fn width() -> usize {
    let width = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if width == 0 { WIDTH } else { width.min(WIDEST) }
}

/// The question about calls of one tool. All are shown in full.
pub(super) fn prompt(request: &ApprovalRequest<'_>, calls: &[&ShownCall], width: usize) -> String {
    let (tool, identity) = (request.tool, request.identity);
    let name = tool.name();
    let many = calls.len();
    let mut text = Lines { text: String::new(), width };
    text.raw(&format!("{ASK}approval needed{ASK:#}"));
    let times = if many > 1 { format!("{many} times ") } else { String::new() };
    text.labeled(if many > 1 { "calls" } else { "call" }, &format!("{times}{name} {}", kind(tool)));
    let tenant = identity.tenant.as_deref().map(|tenant| format!(", tenant {tenant}"));
    let principal = identity.principal.as_deref().unwrap_or("no principal");
    text.labeled("for", &format!("{principal}{}", tenant.unwrap_or_default()));
    let reason = request.rule.reason.as_deref().map(|reason| format!(": {reason}"));
    text.labeled("because", &format!("{}{}", request.rule.label, reason.unwrap_or_default()));
    for (number, ShownCall { arguments, preview }) in (1..).zip(calls) {
        let of = if many > 1 { format!(" of call {number}") } else { String::new() };
        text.raw(&format!("  {DIM}arguments{of}{DIM:#}"));
        let in_preview = preview.as_ref().map(|preview| preview.arguments.as_slice());
        text.text.push_str(&shown_without(arguments, in_preview.unwrap_or_default(), width));
        if let Some(preview) = preview {
            text.raw(&format!("  {DIM}change{of}{DIM:#}"));
            text.text.push_str(&shown_difference(&preview.difference, width));
        }
    }
    let run = if many > 1 { format!("run all {many}") } else { "run it".to_owned() };
    text.choice("y", &format!("{run} once"));
    text.choice(
        "r",
        &format!("{run}, and this tool with exactly these arguments again in this run"),
    );
    text.choice(
        "a",
        &format!("{run}, and this tool again in this session, within bounds shown next"),
    );
    let numbers = match many {
        1 => String::new(),
        _ => {
            text.choice("1 3", "run only these calls once");
            "numbers/".to_owned()
        }
    };
    let it = if many > 1 { "them" } else { "it" };
    text.choice("n", &format!("do not run {it} (default)"));
    text.question(&format!("Run {name}?"), &format!("Run {it}?"), &format!("[y/r/a/{numbers}N]"));
    text.text
}

/// The question about the bounds of a permission for the session.
pub(super) fn bounds(tool: &str, bounds: &Bounds, problem: Option<&str>, width: usize) -> String {
    let mut text = Lines { text: String::new(), width };
    text.raw(&format!("{ASK}permission for this session{ASK:#}"));
    text.labeled("tool", tool);
    text.labeled("differ", &bounds.differing());
    let time = humantime::format_duration(bounds.time);
    text.labeled("count", &format!("{} more calls", bounds.calls));
    text.labeled("time", &format!("{time}, at most until this program ends"));
    text.raw(&format!("  {DIM}fixed arguments{DIM:#}"));
    text.text.push_str(&shown_arguments(&bounds.fixed(), width));
    if let Some(problem) = problem {
        text.labeled("problem", problem);
    }
    text.choice("y", "permit this, and run what was asked");
    text.choice("n", "go back (default)");
    text.wrapped(
        "or what may differ: names of arguments, conditions such as amount<=100, * for all; a number \
         of calls; a time such as 30m",
        2,
    );
    text.question(&format!("Permit {tool}?"), "Permit it?", "[y/N/change]");
    text.text
}

/// A call that a permission admits.
pub(super) fn permitted(tool: &str, calls: u32, time: std::time::Duration) -> String {
    let time = humantime::format_duration(std::time::Duration::from_secs(time.as_secs().max(1)));
    format!("{DIM}permitted for this session: {tool} ({calls} more calls, {time} left){DIM:#}\n")
}

/// A question of a model.
pub(super) fn question(question: &Clarification, width: usize) -> String {
    let mut text = Lines { text: String::new(), width };
    text.raw(&format!("{ASK}question{ASK:#}"));
    for line in question.question.lines() {
        text.wrapped(&harmless(line), 2);
    }
    for (at, option) in question.options.iter().enumerate() {
        text.choice(&(at + 1).to_string(), &harmless(option));
    }
    let how = match question.options.as_slice() {
        [] => "your answer",
        _ => "a number, or your answer",
    };
    let _ = write!(text.text, "{how} {DIM}(empty: none){DIM:#}: ");
    text.text
}

/// Lines of a width.
struct Lines {
    text: String,
    width: usize,
}

impl Lines {
    /// A short line as it is.
    fn raw(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A text in rows with an indent.
    fn wrapped(&mut self, text: &str, indent: usize) {
        for row in rows(text, self.width.saturating_sub(indent)) {
            self.raw(&format!("{}{row}", " ".repeat(indent)));
        }
    }

    /// A label, and a text beside it.
    fn labeled(&mut self, label: &str, text: &str) {
        let indent = 2 + LABELS + 1;
        let mut rows = rows(&harmless(text), self.width.saturating_sub(indent)).into_iter();
        let first = rows.next().unwrap_or_default();
        self.raw(&format!("  {DIM}{label:<LABELS$}{DIM:#} {first}"));
        rows.for_each(|row| self.raw(&format!("{}{row}", " ".repeat(indent))));
    }

    /// An answer, and what it means.
    fn choice(&mut self, key: &str, text: &str) {
        let indent = 4 + key.width();
        let mut rows = rows(text, self.width.saturating_sub(indent)).into_iter();
        let first = rows.next().unwrap_or_default();
        self.raw(&format!("  {STRONG}{key}{STRONG:#}  {first}"));
        rows.for_each(|row| self.raw(&format!("{}{row}", " ".repeat(indent))));
    }

    /// The question before the cursor, shorter if it has no room.
    fn question(&mut self, question: &str, short: &str, keys: &str) {
        let fits = question.width() + keys.width() + 4 <= self.width;
        let question = if fits { question } else { short };
        let _ = write!(self.text, "{STRONG}{question}{STRONG:#} {keys} ");
    }
}

/// A text in rows of a width, broken between words; a longer word is cut.
fn rows(text: &str, width: usize) -> Vec<String> {
    let width = width.max(10);
    let mut rows = vec![String::new()];
    for word in text.split_whitespace() {
        let filled = rows.last().map_or(0, |row| row.width());
        match rows.last_mut() {
            Some(row) if filled > 0 && filled + 1 + word.width() <= width => {
                row.push(' ');
                row.push_str(word);
            }
            Some(row) if filled == 0 && word.width() <= width => row.push_str(word),
            _ => {
                rows.retain(|row| !row.is_empty());
                rows.extend(cut(word, width));
            }
        }
    }
    rows
}

/// The tool's origin and what it declares about its effect.
fn kind(tool: &Tool) -> String {
    let annotations = tool.annotations();
    let effect = match (annotations.read_only, annotations.destructive) {
        (true, _) => "reads only",
        (false, true) => "may destroy data",
        (false, false) => "changes data",
    };
    format!("({}, {effect})", tool.origin_label())
}

/// A text on one line that cannot control the terminal.
fn harmless(text: &str) -> String {
    let text = text.replace('\n', " ");
    let mut shown = String::with_capacity(text.len());
    for (c, is_hidden) in marked(&text) {
        if is_hidden {
            let _ = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

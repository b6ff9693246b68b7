//! The question as it is printed.

use std::{fmt::Write as _, io};

use anstyle::{AnsiColor, Style};
use rustix::termios::tcgetwinsize;
use toolcrib_core::{__internal::marked, ApprovalRequest, Clarification, StoredArguments, Tool};

use super::shown_arguments;

const ASK: Style = AnsiColor::Yellow.on_default().bold();
const STRONG: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The width of a terminal that does not tell its own, and the widest that is used.
const WIDTH: usize = 80;
const WIDEST: usize = 120;

/// The whole question.
pub(super) fn prompt(request: &ApprovalRequest<'_>, arguments: &StoredArguments) -> String {
    let width = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    let width = if width == 0 { WIDTH } else { width.min(WIDEST) };
    text(request, arguments, width)
}

fn text(request: &ApprovalRequest<'_>, arguments: &StoredArguments, width: usize) -> String {
    let (tool, identity) = (request.tool, request.identity);
    let name = tool.name();
    let mut text = String::new();
    let _ = writeln!(text, "{ASK}approval needed{ASK:#}");
    let mut line = |label: &str, value: &str| {
        let value = harmless(value);
        let _ = writeln!(text, "  {DIM}{label:<9}{DIM:#} {value}");
    };
    line("call", &format!("{name} {}", kind(tool)));
    let tenant = identity.tenant.as_deref().map(|tenant| format!(", tenant {tenant}"));
    let principal = identity.principal.as_deref().unwrap_or("no principal");
    line("for", &format!("{principal}{}", tenant.unwrap_or_default()));
    let reason = request.rule.reason.as_deref().map(|reason| format!(": {reason}"));
    line("because", &format!("{}{}", request.rule.label, reason.unwrap_or_default()));
    let _ = writeln!(text, "  {DIM}arguments{DIM:#}");
    text.push_str(&shown_arguments(arguments, width));
    let _ = writeln!(text, "  {STRONG}y{STRONG:#}  run it once");
    let again = "and this tool with exactly these arguments again in this run";
    let _ = writeln!(text, "  {STRONG}r{STRONG:#}  run it, {again}");
    let _ = writeln!(text, "  {STRONG}n{STRONG:#}  do not run it {DIM}(default){DIM:#}");
    let _ = write!(text, "Run {STRONG}{name}{STRONG:#}? [y/r/N] ");
    text
}

/// A question of a model.
pub(super) fn question(question: &Clarification) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{ASK}question{ASK:#}");
    for line in question.question.lines() {
        let _ = writeln!(text, "  {}", harmless(line));
    }
    for (at, option) in question.options.iter().enumerate() {
        let _ = writeln!(text, "  {STRONG}{}{STRONG:#}  {}", at + 1, harmless(option));
    }
    let how = match question.options.as_slice() {
        [] => "your answer",
        _ => "a number, or your answer",
    };
    let _ = write!(text, "{how} {DIM}(empty: none){DIM:#}: ");
    text
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

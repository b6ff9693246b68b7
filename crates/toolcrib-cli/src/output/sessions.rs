//! Stored sessions: the list, and one session as text.

use std::{
    collections::HashMap,
    path::Path,
    time::{Duration, SystemTime},
};

use serde::Serialize;
use toolcrib_core::{
    CallOutcome, Message, SessionInfo, StoredMessage, StoredSession, StoredTurn, ToolCall,
    TurnState, unfence,
};
use toolcrib_gateway::CallerRestrictions;

use super::{
    print::{note, say},
    terminal::Stream,
    text::{BAD, DIM, GOOD, STRONG, WARN, count, grouped, one_line, safe, safe_json, shown},
    trace::written,
};

/// The width of text that is not on a terminal, in characters.
const WIDTH: usize = 100;

/// The length limit of a title in the list, in characters.
const TITLE: usize = 48;

/// The length limit of a tool's result without `-v`, in characters.
const SHORT_RESULT: usize = 400;

/// The output of `sessions --json`.
#[derive(Serialize)]
pub(crate) struct SessionsJson<'a> {
    pub(crate) sessions: &'a [SessionInfo],
}

/// A time, such as `2026-11-24 09:30 UTC`.
pub(super) fn time(ms: u64) -> String {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms));
    // Years after 9999 cannot be written.
    let time = time.filter(|_| ms < 253_402_300_800_000).unwrap_or(SystemTime::UNIX_EPOCH);
    let text = humantime::format_rfc3339_seconds(time).to_string();
    let minutes = text.get(..16).unwrap_or(&text);
    format!("{} UTC", minutes.replace('T', " "))
}

pub(super) fn ended(state: &TurnState) -> &str {
    match state {
        TurnState::Running => "running",
        TurnState::Ended { stopped, .. } => stopped,
    }
}

/// The list of sessions.
pub(crate) fn sessions(sessions: &[SessionInfo], limit: usize, quiet: bool) {
    for session in sessions {
        let id = session.name.as_ref().unwrap_or(&session.id);
        if quiet {
            say!("{}", safe(id));
            continue;
        }
        let turns = count(session.turns, "turn");
        let end = session.last_turn.as_ref().map_or("", ended);
        let title = one_line(&session.title, TITLE);
        let used = time(session.used_ms);
        say!(
            "{GOOD}{}{GOOD:#}  {STRONG}{title}{STRONG:#}\n    {DIM}{used}, {turns}, last {}{DIM:#}",
            safe(id),
            safe(end)
        );
    }
    if !quiet {
        end_of_list(sessions.len(), limit, "no sessions; `toolcrib run` begins one");
    }
}

/// Says that a list is empty, or may lack entries.
pub(super) fn end_of_list(listed: usize, limit: usize, if_empty: &str) {
    if listed == 0 {
        note!("{if_empty}");
    } else if listed == limit {
        note!("{DIM}at most {limit} are listed; `--limit NUMBER` lists more{DIM:#}");
    }
}

/// A deleted session.
pub(crate) fn session_deleted(session: &SessionInfo, quiet: bool) {
    if !quiet {
        let id = session.name.as_ref().unwrap_or(&session.id);
        let turns = count(session.turns, "turn");
        say!("{GOOD}deleted{GOOD:#} {} ({turns})", safe(id));
    }
}

/// The restrictions of a caller of a gateway, as they were before they were lifted.
pub(crate) fn restrictions(found: &CallerRestrictions, lifted: bool) {
    let until = |ms: Option<u64>| {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(ms.unwrap_or_default());
        humantime::format_rfc3339_seconds(at).to_string()
    };
    if found.is_empty() {
        say!("nothing restricts this caller");
    }
    if found.tainted_until_ms.is_some() {
        say!("tainted until {}: it has read untrusted content", until(found.tainted_until_ms));
    }
    if let Some(halted) = &found.halted {
        say!("halted until {}: {}", until(found.halted_until_ms), safe(&halted.to_string()));
    }
    if lifted && !found.is_empty() {
        say!("{GOOD}lifted{GOOD:#}");
    }
}

/// The reason of a wait.
pub(crate) fn session_waits() {
    note!("{DIM}waiting up to 15 seconds: the last run of this session did not close it{DIM:#}");
}

/// A session, for reading.
pub(crate) fn session(session: &StoredSession, verbose: bool) {
    let (info, outcomes) = (&session.info, outcomes(session));
    let name = info.name.as_ref().map(|name| format!(" ({})", safe(name))).unwrap_or_default();
    say!(
        "{STRONG}session{STRONG:#} {}{name}, personality {}, {} bytes",
        info.id,
        safe(&info.personality),
        grouped(info.bytes)
    );
    for (turn, messages) in by_turn(session) {
        say!("");
        turn_line(turn);
        for stored in messages {
            message(&stored.message, &outcomes, verbose);
        }
        if let TurnState::Ended { error: Some(error), .. } = &turn.state {
            block(&format!("{BAD}error{BAD:#}"), error);
        }
    }
}

/// The turns with their messages.
fn by_turn(session: &StoredSession) -> impl Iterator<Item = (&StoredTurn, &[StoredMessage])> {
    let mut rest = session.messages.as_slice();
    session.turns.iter().map(move |turn| {
        let end = rest.partition_point(|stored| stored.turn <= turn.number);
        let (of_turn, later) = rest.split_at(end);
        rest = later;
        (turn, of_turn)
    })
}

/// How each recorded call ended, by its id; `None` if it has not.
pub(super) type Outcomes<'a> = HashMap<&'a str, Option<CallOutcome>>;

pub(super) fn outcomes(session: &StoredSession) -> Outcomes<'_> {
    session.calls.iter().map(|call| (&*call.call_id, call.outcome)).collect()
}

pub(super) fn turn_line(turn: &StoredTurn) {
    let usage = turn.usage;
    let mut tokens = String::new();
    if usage.input_tokens + usage.output_tokens > 0 {
        tokens = format!(", {} tokens in, {} out", usage.input_tokens, usage.output_tokens);
    }
    say!(
        "{STRONG}turn {}{STRONG:#}  {DIM}{}, {}, {}{tokens}{DIM:#}",
        turn.number,
        time(turn.began_ms),
        safe(&turn.model),
        safe(ended(&turn.state))
    );
}

pub(super) fn message(message: &Message, outcomes: &Outcomes<'_>, verbose: bool) {
    if let Some(notice) = message.as_notice() {
        return block(&format!("{WARN}notice{WARN:#}"), notice);
    }
    match message {
        Message::User { text, .. } => block(&format!("{GOOD}user{GOOD:#}"), text),
        Message::Assistant { text, calls: made, .. } => {
            if !text.is_empty() {
                block(&format!("{STRONG}model{STRONG:#}"), text);
            }
            for call in made {
                let outcome = outcome(call, outcomes);
                let line = format!("{} {} {outcome}", call.name, arguments(call, verbose));
                block(&format!("{DIM}call{DIM:#}"), &line);
            }
        }
        Message::Tool { text, is_error, .. } => {
            let text = without_fence(text);
            let text = if verbose { text } else { shortened(&text, SHORT_RESULT) };
            let label = if *is_error {
                format!("{BAD}failed{BAD:#}")
            } else {
                format!("{DIM}result{DIM:#}")
            };
            block(&label, &text);
        }
        _ => {}
    }
}

/// A result without the fence that marks it as untrusted for models.
pub(super) fn without_fence(text: &str) -> String {
    let (inside, after) = unfence(text);
    let separator = if after.is_empty() { "" } else { "\n" };
    format!("{inside}{separator}{after}")
}

/// How a call ended, as far as the store knows: a call that was refused before its effect has no
/// record.
fn outcome(call: &ToolCall, outcomes: &Outcomes<'_>) -> String {
    match outcomes.get(&*call.id) {
        None => "(not made)".to_owned(),
        Some(None) => "(running)".to_owned(),
        Some(Some(outcome)) => format!("({})", CallOutcome::as_str(*outcome)),
    }
}

fn arguments(call: &ToolCall, verbose: bool) -> String {
    let text = written(&call.arguments);
    if verbose { text } else { shortened(&text, SHORT_RESULT) }
}

/// The beginning of a text, with the number of characters that it lacks.
fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => {
            let (start, rest) = text.split_at(end);
            format!(
                "{start}… ({} more characters; -v shows all)",
                grouped(rest.chars().count() as u64)
            )
        }
    }
}

/// A label, and below it a text, wrapped and indented.
fn block(label: &str, text: &str) {
    say!("  {label}");
    let width = Stream::Out.columns().unwrap_or(WIDTH).saturating_sub(4);
    for line in safe(text).lines().flat_map(|line| wrapped(line, width)) {
        say!("    {line}");
    }
}

/// The parts of a line that fit a width, in characters. A longer word is cut.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut filled = 0;
    for word in line.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if filled > 0 && filled + length > width {
            lines.push(String::new());
            filled = 0;
        }
        for c in word.chars() {
            if filled == width && c != ' ' {
                lines.push(String::new());
                filled = 0;
            }
            if let Some(last) = lines.last_mut().filter(|_| filled < width) {
                last.push(c);
                filled += 1;
            }
        }
    }
    lines
}

/// A session as JSON.
pub(crate) fn session_json(session: &StoredSession) -> serde_json::Result<String> {
    serde_json::to_string_pretty(session).map(|json| safe_json(json) + "\n")
}

/// A session as Markdown.
pub(crate) fn session_markdown(session: &StoredSession) -> String {
    let (info, outcomes) = (&session.info, outcomes(session));
    let title = info.name.as_ref().unwrap_or(&info.id);
    let mut page = format!("# Session {}\n", safe(title));
    for (turn, messages) in by_turn(session) {
        let (began, end) = (time(turn.began_ms), safe(ended(&turn.state)));
        page += &format!("\n## Turn {}\n\n{began}, `{}`, {end}\n", turn.number, safe(&turn.model));
        for stored in messages {
            markdown_message(&mut page, &stored.message, &outcomes);
        }
    }
    page
}

fn markdown_message(page: &mut String, message: &Message, outcomes: &Outcomes<'_>) {
    match message {
        Message::User { text, .. } => {
            let (who, text) =
                message.as_notice().map_or(("User", &**text), |text| ("Notice", text));
            *page += &format!("\n**{who}**\n\n{}\n", safe(text));
        }
        Message::Assistant { text, calls: made, .. } => {
            if !text.is_empty() {
                *page += &format!("\n**Model**\n\n{}\n", safe(text));
            }
            for call in made {
                *page +=
                    &format!("\n**Call** `{}` {}\n", safe(&call.name), outcome(call, outcomes));
                *page += &fenced(&arguments(call, true));
            }
        }
        Message::Tool { name, text, is_error, .. } => {
            let what = if *is_error { "Error of" } else { "Result of" };
            *page += &format!("\n**{what}** `{}`\n", safe(name));
            *page += &fenced(&without_fence(text));
        }
        _ => {}
    }
}

/// A text between marks that it does not contain.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let mark = "`".repeat(3.max(longest + 1));
    format!("\n{mark}text\n{}\n{mark}\n", safe(text))
}

/// An exported session on standard output.
pub(crate) fn exported(text: &str) {
    super::streams::print(text.trim_end());
}

/// An exported session in a file.
pub(crate) fn exported_to(path: &Path, quiet: bool) {
    if !quiet {
        note!("{GOOD}written{GOOD:#} {}", shown(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_width_and_lose_no_word() {
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh i", 3), ["abc", "def", "gh ", "i"]);
        assert_eq!(wrapped("  indented text", 10), ["  indented", "text"]);
    }

    #[test]
    fn a_text_cannot_end_its_own_block() {
        assert_eq!(fenced("a\n````\nb"), "\n`````text\na\n````\nb\n`````\n");
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("abcd", 2), "ab… (2 more characters; -v shows all)");
        assert_eq!(time(0), "1970-01-01 00:00 UTC");
        assert_eq!(time(u64::MAX), "1970-01-01 00:00 UTC");
    }
}

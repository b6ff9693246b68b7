//! The lines around the turns of a chat.

use toolcrib_core::{SessionInfo, Usage};

use super::{
    print::note,
    text::{DIM, GOOD, STRONG, count, safe},
    trace::spent,
};

/// The beginning of a chat.
pub(crate) struct ChatStart<'a> {
    pub(crate) project: &'a str,
    pub(crate) model: &'a str,
    /// The session that is continued.
    pub(crate) session: Option<&'a SessionInfo>,
    pub(crate) is_stored: bool,
    /// The number of tools that the model sees first.
    pub(crate) offered: usize,
}

/// Prints the beginning of a chat.
pub(crate) fn chat_begins(start: &ChatStart<'_>) {
    let session = match start.session {
        Some(session) => {
            let name = session.name.as_ref().unwrap_or(&session.id);
            let turns = count(session.turns, "turn");
            format!("session {} ({turns})", safe(name))
        }
        None if start.is_stored => "new session".to_owned(),
        None => "not stored".to_owned(),
    };
    let tools = count(start.offered, "tool");
    note!(
        "{STRONG}{}{STRONG:#} {DIM}· {} · {session} · {tools}{DIM:#}",
        safe(start.project),
        safe(start.model)
    );
    note!("{DIM}/help lists commands, Alt-Enter begins a line, Ctrl-D quits{DIM:#}");
}

/// Prints how to continue, with the options that find the project.
pub(crate) fn chat_ends(session: &str, flags: &str) {
    note!("{DIM}`toolcrib chat --session {session}{}` continues it{DIM:#}", safe(flags));
}

/// Prints a remark.
pub(crate) fn chat_note(text: &str) {
    note!("{DIM}{}{DIM:#}", safe(text));
}

/// Lists the commands.
pub(crate) fn chat_help(commands: &[(&str, &str)]) {
    for (usage, meaning) in commands {
        note!("  {STRONG}{usage:<12}{STRONG:#}  {meaning}");
    }
    note!("  {STRONG}{:<12}{STRONG:#}  ends the turn; at the prompt, twice quits", "Ctrl-C");
}

/// Lists the skills.
pub(crate) fn chat_skills<'a>(known: impl Iterator<Item = &'a str>, active: &[String]) {
    let mut is_empty = true;
    for name in known {
        is_empty = false;
        let is_active = active.iter().any(|active| active == name);
        let state = if is_active { "  active" } else { "" };
        note!("  {}{GOOD}{state}{GOOD:#}", safe(name));
    }
    if is_empty {
        chat_note("this project has no skills");
    }
}

/// Prints the usage of a chat.
pub(crate) fn chat_usage(turns: usize, usage: &Usage) {
    note!("{}: {}", count(turns, "turn"), spent(usage));
}

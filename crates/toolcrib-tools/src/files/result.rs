//! Texts of results.

use std::{borrow::Cow, fmt::Write as _};

use toolcrib_capabilities::files::{
    EditResult, Entry, EntryKind, FileCount, FileLines, FileMatches, LeftOut, LeftOutReason,
    LineEnds, Listing, Match, SearchMode, UndoResult, WriteResult,
};
use toolcrib_core::{ChangeKind, TextOrigin, ToolContext};

use super::{FIRST_COLUMN, FIRST_LINE};

/// The characters of a result that are kept for the line about the file and for the fence.
const RESERVED_CHARS: usize = 500;

/// The characters of that line about lines that are not shown as they are.
const ABOUT_CHARS: usize = 240;

/// The most places of a search that are listed as not shown as they are.
const MOST_ALTERED: usize = 20;

/// The characters of a path that a text about what was left out repeats.
const PATH_CHARS: usize = 80;

/// The characters that a result has room for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room(usize);

impl Room {
    pub(super) fn of(cx: &ToolContext) -> Self {
        Self(cx.result_budget_chars().saturating_sub(RESERVED_CHARS).max(RESERVED_CHARS))
    }
}

/// A line about a write.
pub(super) fn written(path: &str, written: &WriteResult) -> String {
    let does = if written.created { "created" } else { "replaced" };
    let lost = match written.hidden_removed {
        0 => String::new(),
        1 => "; the hidden characters at one place of it are gone".to_owned(),
        places => format!("; the hidden characters at {places} places of it are gone"),
    };
    let (before, now) = (written.line_ends_before, written.line_ends);
    let line_ends = match (before, now) {
        (_, LineEnds::Mixed) => "; its line ends are mixed".to_owned(),
        (LineEnds::None | LineEnds::Lf, LineEnds::Lf) | (_, LineEnds::None) => String::new(),
        (LineEnds::None, now) => format!("; its line ends are {}", now.name()),
        (before, now) if before == now => format!("; its line ends are {}, as before", now.name()),
        (before, now) => {
            format!("; its line ends were {} and are {} now", before.name(), now.name())
        }
    };
    format!("{does} {path} ({} bytes){lost}{line_ends}", written.bytes)
}

/// A line about the edits, then as many whole lines of the difference as there is room for.
pub(super) fn patched(path: &str, edited: &EditResult, room: Room) -> String {
    let EditResult { count, line, diff, .. } = edited;
    let does =
        if *count == 1 { "1 replacement".to_owned() } else { format!("{count} replacements") };
    with_difference(format!("{path}: {does}, from line {line}\n"), diff, room)
}

/// A line about what was reverted, then the difference in the same way.
pub(super) fn reverted(path: &str, undone: &UndoResult, room: Room) -> String {
    match undone {
        UndoResult::Replaced { diff, .. } if diff.is_empty() => {
            format!("{path}: the last change is undone")
        }
        UndoResult::Replaced { diff, .. } => {
            with_difference(format!("{path}: the last change is undone\n"), diff, room)
        }
        UndoResult::Removed => format!("removed {path}, which its last change had created"),
        UndoResult::Restored => format!("restored {path}, which was deleted"),
        UndoResult::MovedBack { path: former, .. } => format!("moved {path} back to {former}"),
        _ => format!("{path}: the last change is undone"),
    }
}

fn with_difference(mut text: String, diff: &str, Room(room): Room) -> String {
    let mut chars = 0;
    let mut lines = diff.split_inclusive('\n');
    while let Some(line) = lines.next() {
        chars += line.chars().count();
        if chars > room {
            let _ = writeln!(text, "and {} more lines of the difference", lines.count() + 1);
            break;
        }
        text.push_str(line);
    }
    text
}

/// The lines of a text that are not shown as they are, as the end of a line about it. Its first line has this number.
fn altered(text: &str, first: usize, shown: Option<TextOrigin>) -> String {
    let kinds = [ChangeKind::Token, ChangeKind::Hidden, ChangeKind::Escape];
    let about = shown.and_then(|origin| origin.shown(text).about(text, first, &kinds, ABOUT_CHARS));
    about.map(|about| format!("; {about}")).unwrap_or_default()
}

/// The text as it is shown. The pipe would do the same, and add a note on what the line about the text
/// says already. Secrets are redacted before, since a secret may contain a token.
fn as_shown(text: &str, shown: Option<TextOrigin>, cx: &ToolContext) -> String {
    match shown {
        Some(origin) => origin.harmless(&cx.redacted(text)).into_owned(),
        None => text.to_owned(),
    }
}

/// A line about the lines, then as many whole lines as there is room for; of a longer line, a part.
pub(super) fn part(
    path: &str,
    lines: &FileLines,
    is_numbered: bool,
    cx: &ToolContext,
    shown: Option<TextOrigin>,
) -> String {
    let (Room(room), FileLines { text, first, first_column, total, .. }) = (Room::of(cx), lines);
    if *total == Some(0) {
        return format!("{path} is empty");
    }
    let of_total = match total {
        Some(total) => format!(" of {total}"),
        None => format!(" (of a file with {} bytes, over the limit of its folder)", lines.size),
    };
    let (mut body, mut chars, mut count) = (String::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        let number = first + count;
        let line = match is_numbered {
            true => Cow::Owned(format!("{number}\t{line}")),
            false => Cow::Borrowed(line),
        };
        let length = line.chars().count();
        if chars + length > room {
            if count == 0 {
                return long_line(path, lines, room, &of_total, cx, shown);
            }
            break;
        }
        body.push_str(&line);
        (chars, count) = (chars + length, count + 1);
    }
    if total.is_none() && count == 1 && !body.ends_with('\n') {
        return long_line(path, lines, room, &of_total, cx, shown);
    }
    let last = first + count.saturating_sub(1);
    let next = match total {
        Some(total) if last >= *total => String::new(),
        _ => format!("; continue with {FIRST_LINE} {}", last + 1),
    };
    let from = match first_column {
        1 => String::new(),
        column => format!(", from character {column} on"),
    };
    let altered = altered(&body, *first, shown);
    let line_ends = shown.map(|_| line_ends(&body)).unwrap_or_default();
    if *first_column > 1 {
        body = cx.redacted_part(&lines.before, &body, "");
    }
    format!(
        "{path}: lines {first} to {last}{of_total}{from}{next}{line_ends}{altered}\n{}",
        as_shown(&body, shown, cx)
    )
}

/// The part of a line for which there is room.
fn long_line(
    path: &str,
    lines: &FileLines,
    room: usize,
    of_total: &str,
    cx: &ToolContext,
    shown: Option<TextOrigin>,
) -> String {
    let FileLines { text, first, first_column, before, total, .. } = lines;
    let line = text.split('\n').next().unwrap_or_default();
    let end = line.char_indices().nth(room).map_or(line.len(), |(at, _)| at);
    let (part, after) = line.split_at_checked(end).unwrap_or((line, ""));
    let last = first_column + part.chars().count().saturating_sub(1);
    let place = match first_column {
        1 => format!("the first {last} characters"),
        column => format!("characters {column} to {last}"),
    };
    let is_whole = total.is_some() || line.len() < text.len();
    let length = match is_whole {
        true => format!("; the line has {} characters", last + after.chars().count()),
        false => String::new(),
    };
    let next = format!("; continue with {FIRST_LINE} {first}, {FIRST_COLUMN} {}", last + 1);
    let altered = altered(part, *first, shown);
    let part = as_shown(&cx.redacted_part(before, part, after), shown, cx);
    format!("{path}: {place} of line {first}{of_total}{length}{next}{altered}\n{part}")
}

/// The line ends of a text that has carriage returns, which are not shown, as the end of a line about it.
fn line_ends(text: &str) -> String {
    match LineEnds::of(text) {
        LineEnds::None | LineEnds::Lf => String::new(),
        LineEnds::Mixed => "; its line ends are mixed".to_owned(),
        line_ends => format!("; its line ends are {}", line_ends.name()),
    }
}

/// One entry in each line.
pub(super) fn listed(listing: &Listing, Room(room): Room) -> String {
    let mut lines = String::new();
    let mut chars = 0;
    let mut is_cut = listing.is_cut;
    for Entry { path, kind, size, .. } in &listing.entries {
        let line = match kind {
            EntryKind::File => format!("{path} ({size} bytes)\n"),
            EntryKind::Folder => format!("{path}/\n"),
            EntryKind::Link => format!("{path} (a link)\n"),
            _ => format!("{path} (not a file)\n"),
        };
        chars += line.chars().count();
        if chars > room {
            is_cut = true;
            break;
        }
        lines.push_str(&line);
    }
    if is_cut {
        lines.push_str("there is more; list a subfolder, or use a narrower pattern\n");
    } else if lines.is_empty() {
        lines.push_str("no files\n");
    }
    lines.push_str(&left_out(&listing.left_out));
    lines
}

/// The matches, and what was left out.
pub(super) fn found(
    found: &FileMatches,
    has_context: bool,
    cx: &ToolContext,
    shown: Option<TextOrigin>,
) -> String {
    let Room(room) = Room::of(cx);
    let mut lines = String::new();
    let mut altered_at = Vec::new();
    let mut is_cut = found.is_cut;
    let mut chars = 0;
    let mut last: Option<(&str, usize)> = None;
    for one in &found.matches {
        let follows = last.is_none_or(|(path, line)| path == one.path && line + 1 == one.line);
        let gap = if has_context && !follows { "--\n" } else { "" };
        let line = format!("{gap}{}\n", matching(one));
        chars += line.chars().count();
        if chars > room {
            is_cut = true;
            break;
        }
        if !altered(&one.text, one.line, shown).is_empty() {
            altered_at.push(format!("{}:{}", one.path, one.line));
        }
        lines.push_str(&line);
        last = Some((&one.path, one.line));
    }
    for FileCount { path, count, .. } in &found.counts {
        let line = match found.mode {
            SearchMode::Counts => format!("{path}: {count}\n"),
            _ => format!("{path}\n"),
        };
        chars += line.chars().count();
        if chars > room {
            is_cut = true;
            break;
        }
        lines.push_str(&line);
    }
    if lines.is_empty() {
        lines = format!("no line matches in {} text files\n", found.files);
    }
    if is_cut {
        lines.push_str("there is more; use a narrower pattern, path or glob\n");
    }
    lines.push_str(&left_out(&found.left_out));
    if altered_at.is_empty() {
        return lines;
    }
    format!("{}{}", not_as_it_is(&altered_at), as_shown(&lines, shown, cx))
}

/// A line with its place. Of a long one, the place of the part.
fn matching(one: &Match) -> String {
    let mark = if one.is_context { '-' } else { ':' };
    let part = match one.is_part {
        true => format!(" [a part of the line, from {FIRST_COLUMN} {}]", one.column),
        false => String::new(),
    };
    format!("{}{mark}{}{mark}{part} {}", one.path, one.line, one.text)
}

/// A line for each reason for which files or folders were left out.
fn left_out(all: &[LeftOut]) -> String {
    let mut text = String::new();
    for LeftOut { reason, count, paths, .. } in all {
        let about = match reason {
            LeftOutReason::TooLarge => "over the limit were not searched (search each by its path)",
            LeftOutReason::Binary => "binary files were not searched",
            LeftOutReason::LongLines => {
                "with very long lines: only the beginnings of these were matched"
            }
            LeftOutReason::Rest => "over the limit of a search: only the beginning was searched",
            LeftOutReason::Unreadable => "could not be read",
            LeftOutReason::Name => "with names that a path cannot contain",
            LeftOutReason::TooDeep => "folders too deep were not entered (name one as the path)",
            _ => "were left out",
        };
        let named: Vec<_> = paths.iter().map(|path| shortened(path)).collect();
        let more = match count.saturating_sub(paths.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = writeln!(text, "{count} {about}: {}{more}", named.join(", "));
    }
    text
}

/// The end of a long path.
fn shortened(path: &str) -> Cow<'_, str> {
    match path.char_indices().nth_back(PATH_CHARS) {
        Some((at, c)) => {
            Cow::Owned(format!("\u{2026}{}", path.get(at + c.len_utf8()..).unwrap_or_default()))
        }
        None => Cow::Borrowed(path),
    }
}

/// A line about the places of a search that are not shown as they are.
fn not_as_it_is(places: &[String]) -> String {
    let about = |most: usize| {
        let (listed, rest) = places.split_at(most.min(places.len()));
        let more = match rest.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "not shown as they are (tokens or hidden characters): {}{more}\n",
            listed.join(", ")
        )
    };
    let mut fitting = (0..=MOST_ALTERED).rev().map(about);
    fitting.find(|about| about.chars().count() <= ABOUT_CHARS).unwrap_or_default()
}

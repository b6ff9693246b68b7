//! The body: one call, one operation on a folder.

use std::{borrow::Cow, fmt::Write as _, sync::Arc};

use serde_json::Value;
use toolcrib_capabilities::files::{
    EditResult, Entry, EntryKind, FileLines, FilePart, FilesHandle, Listing, Replacement, Search,
};
use toolcrib_core::{ChangeKind, ContentBlock, TextOrigin, ToolContext, ToolError, ToolOutput};

use super::{
    ALL, CONTENT, CONTEXT, DEPTH, EDITS, ENCODING, FIRST_LINE, FOLDER, FROM, FilesTool, GLOB,
    IGNORE_CASE, IGNORED, LINES, MATCHES, MAX_MATCHES, MOST_CONTEXT, MOST_LEVELS, MOST_LINES,
    MOST_MATCHES, NEW, NUMBERED, OLD, PATH, PATTERN, TO,
};
use crate::arguments::{present, refused, text};

/// The characters of a result that are kept for the line about the file and for the fence.
const RESERVED_CHARS: usize = 500;

/// The characters of that line about lines that are not shown as they are.
const ABOUT_CHARS: usize = 240;

/// The most places of a search that are listed as not shown as they are.
const MOST_ALTERED: usize = 20;

/// The largest image that a result contains, in bytes: larger ones are refused by vendors of models.
const MOST_IMAGE_BYTES: usize = 3 * 1024 * 1024;

/// The handler of a tool.
#[derive(Clone)]
pub(super) struct Body {
    pub(super) tool: FilesTool,
    pub(super) folders: Arc<[FilesHandle]>,
    /// How the texts of results are shown, or `None` if as they are.
    pub(super) shown: Option<TextOrigin>,
}

impl Body {
    pub(super) async fn call(self, args: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let files = self.folder(&args)?;
        let (args, cx, shown) = (&args, &cx, self.shown);
        let result = match self.tool {
            FilesTool::Read => return read(files, args, cx, shown).await,
            FilesTool::List => list(files, args, cx).await,
            FilesTool::Search => search(files, args, cx, shown).await,
            FilesTool::Write => {
                let (path, content) = (string(args, PATH), string(args, CONTENT).into_owned());
                let written = files.write_of_model(cx, &path, content, shown).await?;
                let does = if written.created { "created" } else { "replaced" };
                let lost = match written.hidden_removed {
                    0 => String::new(),
                    1 => "; the hidden characters at one place of it are gone".to_owned(),
                    places => format!("; the hidden characters at {places} places of it are gone"),
                };
                Ok(format!("{does} {path} ({} bytes){lost}", written.bytes))
            }
            FilesTool::Patch => {
                let path = string(args, PATH);
                let edited = files.edit_of_model(cx, &path, replacements(args)?, shown).await?;
                Ok(patched(&path, &edited, room(cx)))
            }
            FilesTool::Move => {
                let (from, to) = (string(args, FROM), string(args, TO));
                files.rename(cx, &from, &to).await?;
                Ok(format!("moved {from} to {to}"))
            }
            FilesTool::Delete => {
                let path = string(args, PATH);
                files.remove(cx, &path).await?;
                Ok(format!("deleted {path}"))
            }
        };
        result.map(ToolOutput::text)
    }

    /// The folder that the call names, or the only one.
    fn folder(&self, args: &Value) -> Result<&FilesHandle, ToolError> {
        let named = text(args, FOLDER);
        let mut folders = self.folders.iter();
        let folder = match &named {
            Some(name) => folders.find(|folder| folder.name() == name),
            None => folders.next(),
        };
        folder.ok_or_else(|| refused(FOLDER, "is not one of the folders"))
    }
}

fn string<'a>(args: &'a Value, name: &str) -> Cow<'a, str> {
    text(args, name).unwrap_or_default()
}

/// An argument as a number within its limits; the schema has checked it before.
fn number(args: &Value, name: &str, default: usize, most: usize) -> usize {
    let number = present(args, name).and_then(Value::as_u64);
    number.map_or(default, |number| usize::try_from(number).unwrap_or(most)).clamp(1, most)
}

fn flag(args: &Value, name: &str) -> bool {
    present(args, name).and_then(Value::as_bool).unwrap_or_default()
}

fn room(cx: &ToolContext) -> usize {
    cx.result_budget_chars().saturating_sub(RESERVED_CHARS).max(RESERVED_CHARS)
}

async fn read(
    files: &FilesHandle,
    args: &Value,
    cx: &ToolContext,
    shown: Option<TextOrigin>,
) -> Result<ToolOutput, ToolError> {
    let path = string(args, PATH);
    let first = number(args, FIRST_LINE, 1, usize::MAX);
    let count = number(args, LINES, MOST_LINES, MOST_LINES);
    let encoding = text(args, ENCODING);
    match files.read_part(cx, &path, encoding.as_deref(), (first, count)).await? {
        FilePart::Lines(lines) => {
            Ok(ToolOutput::text(part(&path, &lines, flag(args, NUMBERED), cx, shown)))
        }
        FilePart::Image { info, bytes, .. } if bytes.len() <= MOST_IMAGE_BYTES => {
            let about = format!("{path}: {info}, {} bytes", bytes.len());
            Ok(ToolOutput::text(about).block(ContentBlock::image(info.media_type, bytes)))
        }
        FilePart::Image { info, bytes, .. } => Err(refused(
            PATH,
            &format!(
                "is an image ({info}) with {} bytes; at most {MOST_IMAGE_BYTES} can be shown; \
                 make a smaller copy of it",
                bytes.len()
            ),
        )),
        _ => Err(refused(PATH, "is neither text nor an image")),
    }
}

/// The replacements of a patch; the schema has checked them before.
fn replacements(args: &Value) -> Result<Vec<Replacement>, ToolError> {
    let edits = args.get(EDITS).and_then(Value::as_array);
    let edits = edits.filter(|edits| !edits.is_empty());
    let edits = edits.ok_or_else(|| refused(EDITS, "contains no replacement"))?;
    let one = |edit: &Value| Replacement {
        old: string(edit, OLD).into_owned(),
        new: string(edit, NEW).into_owned(),
        all: flag(edit, ALL),
    };
    Ok(edits.iter().map(one).collect())
}

/// A line about the edits, then as many whole lines of the difference as there is room for.
fn patched(path: &str, edited: &EditResult, room: usize) -> String {
    let EditResult { count, line, diff, .. } = edited;
    let does =
        if *count == 1 { "1 replacement".to_owned() } else { format!("{count} replacements") };
    let mut text = format!("{path}: {does}, from line {line}\n");
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

/// A line about the lines, then as many whole lines as there is room for.
fn part(
    path: &str,
    lines: &FileLines,
    is_numbered: bool,
    cx: &ToolContext,
    shown: Option<TextOrigin>,
) -> String {
    let (room, FileLines { text, first, total, .. }) = (room(cx), lines);
    if *total == 0 {
        return format!("{path} is empty");
    }
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
                let start: String = line.chars().take(room).collect();
                let about =
                    format!("{path}: the first {room} characters of line {number} of {total}");
                let altered = altered(&start, number, shown);
                let start = as_shown(&start, shown, cx);
                return format!("{about}; the line has {length} characters{altered}\n{start}");
            }
            break;
        }
        body.push_str(&line);
        (chars, count) = (chars + length, count + 1);
    }
    let last = first + count - 1;
    let next = if last < *total {
        format!("; continue with {FIRST_LINE} {}", last + 1)
    } else {
        String::new()
    };
    let altered = altered(&body, *first, shown);
    format!(
        "{path}: lines {first} to {last} of {total}{next}{altered}\n{}",
        as_shown(&body, shown, cx)
    )
}

async fn list(files: &FilesHandle, args: &Value, cx: &ToolContext) -> Result<String, ToolError> {
    let path = string(args, PATH);
    let ignored = flag(args, IGNORED);
    let listing = match text(args, GLOB) {
        Some(glob) => files.find(cx, &path, &glob, ignored).await?,
        None => files.list(cx, &path, number(args, DEPTH, 1, MOST_LEVELS), ignored).await?,
    };
    Ok(listed(&listing, room(cx)))
}

/// One entry in each line.
fn listed(listing: &Listing, room: usize) -> String {
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
    lines
}

async fn search(
    files: &FilesHandle,
    args: &Value,
    cx: &ToolContext,
    shown: Option<TextOrigin>,
) -> Result<String, ToolError> {
    let mut search = Search::new(string(args, PATTERN))
        .path(string(args, PATH))
        .max_matches(number(args, MAX_MATCHES, MATCHES, MOST_MATCHES));
    search.glob = text(args, GLOB).map(Cow::into_owned);
    search.ignore_case = flag(args, IGNORE_CASE);
    search.ignored = flag(args, IGNORED);
    let context = present(args, CONTEXT).and_then(Value::as_u64).unwrap_or_default();
    search.context = usize::try_from(context).unwrap_or(MOST_CONTEXT);
    let search_context = search.context;
    let found = files.search(cx, search).await?;
    let room = room(cx);
    let mut lines = String::new();
    let mut altered_at = Vec::new();
    let mut is_cut = found.is_cut;
    let mut chars = 0;
    let mut last: Option<(&str, usize)> = None;
    for one in &found.matches {
        let follows = last.is_none_or(|(path, line)| path == one.path && line + 1 == one.line);
        let gap = if search_context > 0 && !follows { "--\n" } else { "" };
        let mark = if one.is_context { '-' } else { ':' };
        let line = format!("{gap}{}{mark}{}{mark} {}\n", one.path, one.line, one.text);
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
    if lines.is_empty() {
        lines = format!("no line matches in {} text files\n", found.files);
    }
    if is_cut {
        lines.push_str("there is more; use a narrower pattern, path or glob\n");
    }
    if altered_at.is_empty() {
        return Ok(lines);
    }
    Ok(format!("{}{}", not_as_it_is(&altered_at), as_shown(&lines, shown, cx)))
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

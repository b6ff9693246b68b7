//! The body: one call, one operation on a folder.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;
use toolcrib_capabilities::files::{
    FilePart, FileRange, FilesHandle, Replacement, Search, SearchMode,
};
use toolcrib_core::{
    CallPreview, ContentBlock, ErrorCode, TextOrigin, ToolContext, ToolError, ToolOutput,
};

use super::{
    ALL, CONTENT, CONTEXT, DEPTH, EDITS, ENCODING, FIRST_COLUMN, FIRST_LINE, FOLDER, FROM,
    FilesTool, GLOB, IGNORE_CASE, IGNORED, LINES, MATCHES, MAX_MATCHES, MODE, MODES, MOST_CONTEXT,
    MOST_LEVELS, MOST_LINES, MOST_MATCHES, NEW, NUMBERED, OLD, PATH, PATTERN, TO,
    result::{Room, found, listed, part, patched, reverted, written},
};
use crate::arguments::{present, refused, text};

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
                let result = files.write_of_model(cx, &path, content, shown).await?;
                Ok(written(&path, &result))
            }
            FilesTool::Patch => {
                let path = string(args, PATH);
                let edited = files.edit_of_model(cx, &path, replacements(args)?, shown).await?;
                Ok(patched(&path, &edited, Room::of(cx)))
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
            FilesTool::Undo => {
                let path = string(args, PATH);
                let undone = files.undo(cx, &path).await?;
                Ok(reverted(&path, &undone, Room::of(cx)))
            }
        };
        result.map(ToolOutput::text)
    }

    /// The change that a call would make; `None` for a file that does not exist yet.
    pub(super) async fn preview(self, args: Value, cx: ToolContext) -> Option<CallPreview> {
        let files = self.folder(&args).ok()?;
        let (path, shown) = (string(&args, PATH), self.shown);
        let (difference, argument) = match self.tool {
            FilesTool::Write => {
                let content = string(&args, CONTENT).into_owned();
                (files.preview_write_of_model(&cx, &path, content, shown).await, CONTENT)
            }
            FilesTool::Patch => {
                let edits = replacements(&args).ok()?;
                (files.preview_edit_of_model(&cx, &path, edits, shown).await, EDITS)
            }
            _ => return None,
        };
        difference.ok().map(|difference| CallPreview::new(difference, [argument]))
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

async fn read(
    files: &FilesHandle,
    args: &Value,
    cx: &ToolContext,
    shown: Option<TextOrigin>,
) -> Result<ToolOutput, ToolError> {
    let mut path = string(args, PATH);
    let mut range = FileRange::default();
    range.first_line = number(args, FIRST_LINE, 1, usize::MAX);
    range.first_column = number(args, FIRST_COLUMN, 1, usize::MAX);
    range.lines = number(args, LINES, MOST_LINES, MOST_LINES);
    range.encoding = text(args, ENCODING).map(Cow::into_owned);
    let read = match files.read_part(cx, &path, range.clone()).await {
        Err(error) if error.code == ErrorCode::InputInvalid => match of_link(&path) {
            Some((file, first, last)) => {
                if present(args, FIRST_LINE).is_none() && present(args, LINES).is_none() {
                    (range.first_line, range.lines) = (first, last.saturating_sub(first) + 1);
                }
                let part = files.read_part(cx, file, range).await.map_err(|_| error)?;
                path = Cow::Owned(file.to_owned());
                part
            }
            None => return Err(error),
        },
        read => read?,
    };
    match read {
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

/// The file and the lines of a link such as `a.log#L3-L7`, which other tools write into their results.
fn of_link(path: &str) -> Option<(&str, usize, usize)> {
    let (file, lines) = path.rsplit_once("#L")?;
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    let (first, last): (usize, usize) =
        (first.parse().ok()?, last.trim_start_matches('L').parse().ok()?);
    (first >= 1 && last >= first).then_some((
        file,
        first,
        last.min(first.saturating_add(MOST_LINES - 1)),
    ))
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

async fn list(files: &FilesHandle, args: &Value, cx: &ToolContext) -> Result<String, ToolError> {
    let path = string(args, PATH);
    let ignored = flag(args, IGNORED);
    let listing = match text(args, GLOB) {
        Some(glob) => files.find(cx, &path, &glob, ignored).await?,
        None => files.list(cx, &path, number(args, DEPTH, 1, MOST_LEVELS), ignored).await?,
    };
    Ok(listed(&listing, Room::of(cx)))
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
    let mode = text(args, MODE).unwrap_or_default();
    search.mode = match MODES.iter().position(|known| *known == mode) {
        Some(1) => SearchMode::Files,
        Some(2) => SearchMode::Counts,
        _ => SearchMode::Lines,
    };
    let has_context = search.context > 0 && search.mode == SearchMode::Lines;
    let matches = files.search(cx, search).await?;
    Ok(found(&matches, has_context, cx, shown))
}

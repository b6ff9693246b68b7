//! Writes files: compares with what was read, then replaces the whole file at once.

use std::{io, path::Path, slice};

use cap_fs_ext::MetadataExt as _;
use cap_std::fs::Metadata;
use toolcrib_core::{Digest, TextOrigin, ToolContext, ToolError};

use super::{
    FilesHandle,
    decode::{MARK, TextFile},
    edit::{Replacement, diff, replace},
    error::FileError,
    line_ends::LineEnds,
    locate::{LocatedEntry, Purpose},
    locks::lock,
    path::RelativePath,
    put::{check_changeable, put},
    read::{FileContent, read_file, record_of},
    shown::{LookAlike, unseen},
    trash::{KeptFile, KeptKind, Trash},
};

/// A result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteResult {
    /// The number of bytes of the file.
    pub bytes: u64,
    /// Whether the file is new.
    pub created: bool,
    /// The number of places with hidden characters that a model did not see, and that the old content
    /// had and the new one does not. Only of [`FilesHandle::write_of_model`].
    pub hidden_removed: usize,
    /// The line ends of the old content. Only of [`FilesHandle::write_of_model`].
    pub line_ends_before: LineEnds,
    /// The line ends of the new content. Only of [`FilesHandle::write_of_model`].
    pub line_ends: LineEnds,
}

/// A result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EditResult {
    /// The number of bytes of the file.
    pub bytes: u64,
    /// The line of the first change, from 1.
    pub line: usize,
    /// The number of replaced occurrences.
    pub count: usize,
    /// The difference in the unified format, without the names of files.
    pub diff: String,
}

impl FilesHandle {
    /// Writes a file: a new one, or over one that the conversation has read and that has not changed
    /// since. Missing folders are created. The file is replaced at once: readers see the old or the
    /// new content. Its mode is kept; further attributes are not.
    ///
    /// # Errors
    /// A [`ToolError`] with a [`FileError`] as its cause; nothing has changed then.
    /// [`FileError::Stale`] has the code [`StaleWrite`](toolcrib_core::ErrorCode::StaleWrite).
    pub async fn write(
        &self,
        cx: &ToolContext,
        path: &str,
        content: impl Into<Vec<u8>>,
    ) -> Result<WriteResult, ToolError> {
        let change = Change::Write(content.into());
        Ok(self.change(cx, path, Purpose::Create, change).await?.0)
    }

    /// Writes a text that a model composed from what it read, which was `shown` by a rule, or as it is
    /// (`None`). Besides, as [`write`](Self::write). Content that is not shown stays: a byte order mark, UTF-16,
    /// and the line ends of a file where they are all the same, if the text has no carriage return.
    /// [`undo`](Self::undo) reverts it.
    ///
    /// # Errors
    /// As [`write`](Self::write). Also for a file with known secrets, which are shown redacted, and for
    /// one that is not text in UTF-8 or UTF-16. For a text with a look-alike of a
    /// token that the file does not have, [`FileError::Edit`].
    pub async fn write_of_model(
        &self,
        cx: &ToolContext,
        path: &str,
        text: String,
        shown: Option<TextOrigin>,
    ) -> Result<WriteResult, ToolError> {
        let change = Change::WriteOfModel(text, shown);
        Ok(self.change(cx, path, Purpose::Create, change).await?.0)
    }

    /// Creates a file that does not exist. Missing folders are created.
    ///
    /// # Errors
    /// As [`write`](Self::write); [`FileError::Exists`].
    pub async fn create(
        &self,
        cx: &ToolContext,
        path: &str,
        content: impl Into<Vec<u8>>,
    ) -> Result<WriteResult, ToolError> {
        let change = Change::Create(content.into());
        Ok(self.change(cx, path, Purpose::Create, change).await?.0)
    }

    /// Replaces texts in a text file that the conversation has read: all of them, or none. They are
    /// taken literally, except for line ends: each text is found with those of the file, and written with
    /// those of the file, or of the lines around where the file has several kinds. Each is looked for in
    /// the result of those before it. [`undo`](Self::undo) reverts it.
    ///
    /// # Errors
    /// As [`write`](Self::write); [`FileError::Edit`], with the nearest lines as a hint.
    pub async fn edit(
        &self,
        cx: &ToolContext,
        path: &str,
        replacements: impl Into<Vec<Replacement>>,
    ) -> Result<EditResult, ToolError> {
        self.edit_of_model(cx, path, replacements, None).await
    }

    /// As [`edit`](Self::edit), for replacements that a model composed from what it read, which was
    /// `shown` by a rule, or as it is (`None`). A text to replace may be written as it is shown: the real
    /// bytes are replaced, if one place is shown so.
    ///
    /// # Errors
    /// As [`edit`](Self::edit); also for a new text with a look-alike of a token that the file does not
    /// have.
    pub async fn edit_of_model(
        &self,
        cx: &ToolContext,
        path: &str,
        replacements: impl Into<Vec<Replacement>>,
        shown: Option<TextOrigin>,
    ) -> Result<EditResult, ToolError> {
        let change = Change::Edit(replacements.into(), shown);
        let (written, edit) = self.change(cx, path, Purpose::Replace, change).await?;
        let Edit { line, count, diff, .. } = edit;
        Ok(EditResult { bytes: written.bytes, line, count, diff })
    }

    /// The difference that [`write_of_model`](Self::write_of_model) would make to a file that exists, in
    /// the unified format. Nothing changes.
    ///
    /// # Errors
    /// As [`write_of_model`](Self::write_of_model); also if there is no such file.
    pub async fn preview_write_of_model(
        &self,
        cx: &ToolContext,
        path: &str,
        text: String,
        shown: Option<TextOrigin>,
    ) -> Result<String, ToolError> {
        self.preview(cx, path, Change::WriteOfModel(text, shown)).await
    }

    /// The difference that [`edit_of_model`](Self::edit_of_model) would make, in the unified format. Nothing
    /// changes.
    ///
    /// # Errors
    /// As [`edit_of_model`](Self::edit_of_model).
    pub async fn preview_edit_of_model(
        &self,
        cx: &ToolContext,
        path: &str,
        replacements: impl Into<Vec<Replacement>>,
        shown: Option<TextOrigin>,
    ) -> Result<String, ToolError> {
        self.preview(cx, path, Change::Edit(replacements.into(), shown)).await
    }

    async fn preview(
        &self,
        cx: &ToolContext,
        path: &str,
        change: Change,
    ) -> Result<String, ToolError> {
        self.check_writable().map_err(FileError::into_tool_error)?;
        let path = RelativePath::parse(path).map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, cx, _| {
            let limit = handle.limits().max_file_bytes;
            change.check_size(&path, limit)?;
            let located = handle.top().locate(&path, Purpose::Replace)?;
            let old = compare(cx, &located, limit)?;
            let not_found = || FileError::NotFound { path: located.written.clone() };
            let old = old.ok_or_else(not_found)?;
            let before = TextFile::of(&old.bytes).ok_or_else(not_found)?.text;
            let (content, _) = change.apply(cx, Some(&old), &located, limit)?;
            let after = TextFile::of(&content).ok_or_else(not_found)?.text;
            Ok(diff(&before, &after))
        })
        .await
    }

    async fn change(
        &self,
        cx: &ToolContext,
        path: &str,
        purpose: Purpose,
        change: Change,
    ) -> Result<(WriteResult, Edit), ToolError> {
        self.check_writable().map_err(FileError::into_tool_error)?;
        let path = RelativePath::parse(path).map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, cx, _| {
            let limit = handle.limits().max_file_bytes;
            change.check_size(&path, limit)?;
            let located = handle.top().locate(&path, purpose)?;
            let _locked = lock(&located.path);
            // Again, since another call may have changed it before the lock.
            let located = handle.top().locate(&path, purpose)?;
            let old = compare(cx, &located, limit)?;
            let is_of_model = change.is_of_model();
            let (content, edit) = change.apply(cx, old.as_ref(), &located, limit)?;
            let digest = Digest::of(&content);
            let trash = handle.trash().filter(|_| is_of_model);
            let kept = trash.map(|trash| {
                keep(trash, handle.below(&located.path), old.as_ref(), &digest)
                    .map_err(|source| FileError::NotKept { path: located.written.clone(), source })
            });
            let kept = kept.transpose()?.flatten();
            let found = located.found.as_ref().filter(|_| old.is_some());
            let modified = put(&located, found, &content).inspect_err(|_| {
                if let Some((trash, kept)) = &kept {
                    trash.delete(kept);
                }
            })?;
            let written = WriteResult {
                bytes: content.len() as u64,
                created: old.is_none(),
                hidden_removed: edit.hidden_removed,
                line_ends_before: edit.line_ends_before,
                line_ends: edit.line_ends,
            };
            if let Some(reads) = cx.reads() {
                let content = FileContent { bytes: content, digest, modified };
                reads.record(located.path.clone(), record_of(cx, &content));
            }
            Ok((written, edit))
        })
        .await
    }
}

/// Keeps what a change of a path replaces, with the digest of the new content. `None` if that is the same.
fn keep(
    trash: &Path,
    path: &Path,
    old: Option<&FileContent>,
    new: &Digest,
) -> io::Result<Option<(Trash, KeptFile)>> {
    let (kind, content) = match old {
        Some(old) if old.digest == *new => return Ok(None),
        Some(old) => (KeptKind::Replaced, old.bytes.as_slice()),
        None => (KeptKind::Created, [].as_slice()),
    };
    let trash = Trash::open(trash)?;
    let kept = trash.keep(kind, path, content, Some(new))?;
    Ok(Some((trash, kept)))
}

enum Change {
    Write(Vec<u8>),
    WriteOfModel(String, Option<TextOrigin>),
    Create(Vec<u8>),
    Edit(Vec<Replacement>, Option<TextOrigin>),
}

/// The effect of a change of a model; empty for other changes.
struct Edit {
    line: usize,
    count: usize,
    diff: String,
    hidden_removed: usize,
    line_ends_before: LineEnds,
    line_ends: LineEnds,
}

impl Default for Edit {
    fn default() -> Self {
        let none = LineEnds::None;
        let (line_ends_before, line_ends) = (none, none);
        let diff = String::new();
        Self { line: 0, count: 0, diff, hidden_removed: 0, line_ends_before, line_ends }
    }
}

impl Change {
    /// Whether it can be undone: a model composed it.
    fn is_of_model(&self) -> bool {
        matches!(self, Self::WriteOfModel(..) | Self::Edit(..))
    }

    /// Before anything is created.
    fn check_size(&self, path: &RelativePath, limit: u64) -> Result<(), FileError> {
        let size = match self {
            Self::Write(content) | Self::Create(content) => content.len(),
            Self::WriteOfModel(text, _) => text.len(),
            Self::Edit(edits, _) => {
                edits.iter().map(|edit| edit.new.len()).max().unwrap_or_default()
            }
        };
        check_size(size, path.written(), limit)
    }

    /// The new content, and what an edit did.
    fn apply(
        self,
        cx: &ToolContext,
        old: Option<&FileContent>,
        located: &LocatedEntry,
        limit: u64,
    ) -> Result<(Vec<u8>, Edit), FileError> {
        let path = || located.written.clone();
        let (content, edit) = match (self, old) {
            (Self::Write(content), _) | (Self::Create(content), None) => {
                return Ok((content, Edit::default()));
            }
            (Self::Create(_), Some(_)) => return Err(FileError::Exists { path: path() }),
            (Self::WriteOfModel(text, shown), old) => overwrite(cx, old, text, shown, path)?,
            (Self::Edit(..), None) => return Err(FileError::NotFound { path: path() }),
            (Self::Edit(edits, shown), Some(old)) => edit(old, edits, shown, limit, path)?,
        };
        check_size(content.len(), &located.written, limit)?;
        Ok((content, edit))
    }
}

/// Replaces the whole text of a file by one that a model composed.
fn overwrite(
    cx: &ToolContext,
    old: Option<&FileContent>,
    text: String,
    shown: Option<TextOrigin>,
    path: impl Fn() -> String,
) -> Result<(Vec<u8>, Edit), FileError> {
    let old = old.map(|old| replaceable(cx, &old.bytes)).transpose();
    let old = old.map_err(|problem| FileError::Path { path: path(), problem })?;
    let before = old.as_ref().map_or("", |old| &old.text);
    let all = 0..text.len();
    let look_alike =
        shown.and_then(|origin| LookAlike::first(&text, slice::from_ref(&all), before, origin));
    if let Some(problem) = look_alike {
        return Err(FileError::Edit { path: path(), of: None, problem: problem.into() });
    }
    let line_ends_before = LineEnds::of(before);
    let hidden_removed = unseen(before, shown).saturating_sub(unseen(&text, shown));
    // Carriage returns are not shown, so a text without them says nothing about them.
    let text = match line_ends_before.only() {
        Some(end) if !text.contains('\r') => text.replace('\n', end),
        _ => text,
    };
    let line_ends = LineEnds::of(&text);
    let content = match &old {
        Some(old) => old.encode_whole(text),
        None => text.into_bytes(),
    };
    Ok((content, Edit { hidden_removed, line_ends_before, line_ends, ..Edit::default() }))
}

/// Replaces parts of the text of a file.
fn edit(
    old: &FileContent,
    mut edits: Vec<Replacement>,
    shown: Option<TextOrigin>,
    limit: u64,
    path: impl Fn() -> String,
) -> Result<(Vec<u8>, Edit), FileError> {
    let size = old.bytes.len() as u64;
    let old = TextFile::of(&old.bytes).ok_or_else(|| FileError::NotText {
        path: path(),
        kind: "not text in UTF-8 or UTF-16, and so cannot be edited",
        size,
    })?;
    // The mark at the beginning is not a part of the text.
    for text in edits.iter_mut().flat_map(|edit| [&mut edit.old, &mut edit.new]) {
        if let Some(rest) = text.strip_prefix(MARK).filter(|rest| !rest.is_empty()) {
            *text = rest.to_owned();
        }
    }
    let edited = replace(&old.text, &edits, shown).map_err(|(number, problem)| {
        let of = (edits.len() > 1).then_some((number, edits.len()));
        FileError::Edit { path: path(), of, problem }
    })?;
    check_size(edited.text.len(), &path(), limit)?;
    let diff = diff(&old.text, &edited.text);
    let (line, count) = (edited.line, edited.count);
    Ok((old.encode(edited.text), Edit { line, count, diff, ..Edit::default() }))
}

/// The old text, if a whole new one may replace it: a model has seen all of it, except for hidden
/// characters and carriage returns.
///
/// # Errors
/// The problem; ends a sentence about the file.
fn replaceable(cx: &ToolContext, bytes: &[u8]) -> Result<TextFile, &'static str> {
    let Some(old) = TextFile::of(bytes) else {
        return Err("is not text in UTF-8 or UTF-16, so it is not replaced by text; delete it \
                    first, or write another file");
    };
    if cx.redacted(&old.text) != old.text {
        return Err(
            "contains a secret, which is not shown to you as it is; change parts of it with \
                    an edit instead of replacing it",
        );
    }
    Ok(old)
}

fn check_size(size: usize, path: &str, limit: u64) -> Result<(), FileError> {
    if size as u64 > limit {
        return Err(FileError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(())
}

/// The present content, which is the one that the conversation has read; `None` for a new file.
fn compare(
    cx: &ToolContext,
    located: &LocatedEntry,
    limit: u64,
) -> Result<Option<FileContent>, FileError> {
    let stale = |problem| Err(FileError::Stale { path: located.written.clone(), problem });
    let known = cx.reads().and_then(|reads| reads.get(&located.path));
    let Some(found) = &located.found else {
        return match known {
            None if located.name.is_some() => Ok(None),
            None => Err(located.file().err().unwrap_or(FileError::Cancelled)),
            Some(_) => stale(
                "was removed since it was read; nothing was written; read it again, then write it again",
            ),
        };
    };
    check_changeable(located)?;
    check_names(located, found)?;
    // It could not be read whole either.
    check_size(usize::try_from(found.len()).unwrap_or(usize::MAX), &located.written, limit)?;
    let Some(known) = known else {
        return stale("was not read in this conversation; nothing was written; read it first");
    };
    let content = read_file(cx, located, limit)?;
    if content.digest != known.digest {
        return stale("changed since it was read; nothing was written; read it again");
    }
    Ok(Some(content))
}

/// Only one name: others may be outside the folder, and would keep the old content.
pub(super) fn check_names(located: &LocatedEntry, found: &Metadata) -> Result<(), FileError> {
    match found.nlink() > 1 {
        true => Err(FileError::HardLink { path: located.written.clone() }),
        false => Ok(()),
    }
}

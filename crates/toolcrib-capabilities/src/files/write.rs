//! Writes files: compares with what was read, then replaces the whole file at once.

use std::{
    ffi::{OsStr, OsString},
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    io::{self, Write as _},
    path::Path,
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use cap_fs_ext::MetadataExt as _;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, Permissions};
use parking_lot::{Mutex, MutexGuard};
use toolcrib_core::{Digest, TextOrigin, ToolContext, ToolError};

use super::{
    FilesHandle,
    edit::{Replacement, diff, replace},
    error::FileError,
    locate::{LocatedEntry, Purpose},
    path::RelativePath,
    read::{FileContent, modified, read_file, record_of, text_of},
    shown::{LookAlike, unseen},
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

/// Locks for the comparison and the write after it, of all folders of the process. Two paths may
/// share a lock; one path always has the same.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// Distinguishes temporary files of one process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The names that are tried for a temporary file, since an earlier process may have left some.
const ATTEMPTS: usize = 16;

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
    /// (`None`). Besides, as [`write`](Self::write); a byte order mark, which is not shown, stays.
    ///
    /// # Errors
    /// As [`write`](Self::write). Also for a file with known secrets, which are shown redacted, and for
    /// one that is not text in UTF-8: such a file can be [edited](Self::edit_of_model). For a text with a
    /// look-alike of a token that the file does not have, [`FileError::Edit`].
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

    /// Creates a file. Missing folders are created.
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
    /// taken literally. Each is looked for in the result of those before it.
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
            let (content, edit) = change.apply(cx, old.as_ref(), &located, limit)?;
            let found = located.found.as_ref().filter(|_| old.is_some());
            let modified = put(&located, found, &content)?;
            let written = WriteResult {
                bytes: content.len() as u64,
                created: old.is_none(),
                hidden_removed: edit.hidden_removed,
            };
            if let Some(reads) = cx.reads() {
                let digest = Digest::of(&content);
                let content = FileContent { bytes: content, digest, modified };
                reads.record(located.path.clone(), record_of(cx, &content));
            }
            Ok((written, edit))
        })
        .await
    }
}

enum Change {
    Write(Vec<u8>),
    WriteOfModel(String, Option<TextOrigin>),
    Create(Vec<u8>),
    Edit(Vec<Replacement>, Option<TextOrigin>),
}

/// The effect of a change of a model; empty for other changes.
#[derive(Default)]
struct Edit {
    line: usize,
    count: usize,
    diff: String,
    hidden_removed: usize,
}

impl Change {
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
        match (self, old) {
            (Self::Write(content), _) | (Self::Create(content), None) => {
                Ok((content, Edit::default()))
            }
            (Self::Create(_), Some(_)) => Err(FileError::Exists { path: path() }),
            (Self::WriteOfModel(text, shown), old) => {
                let before = match old {
                    Some(old) => replaceable(cx, &old.bytes, &text, shown)
                        .map_err(|problem| FileError::Path { path: path(), problem })?,
                    None => "",
                };
                let all = [0..text.len()];
                let look_alike =
                    shown.and_then(|origin| LookAlike::first(&text, &all, before, origin));
                if let Some(problem) = look_alike {
                    return Err(FileError::Edit {
                        path: path(),
                        of: None,
                        problem: problem.into(),
                    });
                }
                let (mark, before) = split_mark(before);
                let hidden_removed = unseen(before, shown).saturating_sub(unseen(&text, shown));
                let text = if text.starts_with(mark) { text } else { format!("{mark}{text}") };
                Ok((text.into_bytes(), Edit { hidden_removed, ..Edit::default() }))
            }
            (Self::Edit(..), None) => Err(FileError::NotFound { path: path() }),
            (Self::Edit(edits, shown), Some(old)) => {
                let before = text_of(old.bytes.clone(), &located.written)?;
                let edited = replace(&before, &edits, shown).map_err(|(number, problem)| {
                    let of = (edits.len() > 1).then_some((number, edits.len()));
                    FileError::Edit { path: path(), of, problem }
                })?;
                check_size(edited.text.len(), &located.written, limit)?;
                let diff = diff(&before, &edited.text);
                let (line, count) = (edited.line, edited.count);
                let edit = Edit { line, count, diff, ..Edit::default() };
                Ok((edited.text.into_bytes(), edit))
            }
        }
    }
}

/// The old text, if a whole new one may replace it: a model has seen all of it, except for hidden
/// characters.
///
/// # Errors
/// The problem; ends a sentence about the file.
fn replaceable<'a>(
    cx: &ToolContext,
    bytes: &'a [u8],
    new: &str,
    shown: Option<TextOrigin>,
) -> Result<&'a str, &'static str> {
    let Ok(old) = std::str::from_utf8(bytes) else {
        return Err(
            "is not text in UTF-8, so it is not replaced by text in UTF-8; delete it first, \
                    or write another file",
        );
    };
    if cx.redacted(old) != old {
        return Err(
            "contains a secret, which is not shown to you as it is; change parts of it with \
                    an edit instead of replacing it",
        );
    }
    if shown.is_some() && old.contains('\r') && !new.contains('\r') {
        return Err(
            "has carriage returns at the ends of its lines, which are not shown to you as they \
                    are; change parts of it with an edit instead of replacing it",
        );
    }
    Ok(old)
}

/// The byte order mark of a text, or none, and the rest.
fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}

fn check_size(size: usize, path: &str, limit: u64) -> Result<(), FileError> {
    if size as u64 > limit {
        return Err(FileError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(())
}

/// The lock of a resolved path.
pub(super) fn lock(path: &Path) -> MutexGuard<'static, ()> {
    lock_at(place_of(path))
}

/// The locks of two resolved paths, in an order that is the same for all callers; one if they share it.
pub(super) fn lock_both(
    one: &Path,
    other: &Path,
) -> (MutexGuard<'static, ()>, Option<MutexGuard<'static, ()>>) {
    let (one, other) = (place_of(one), place_of(other));
    (lock_at(one.min(other)), (one != other).then(|| lock_at(one.max(other))))
}

fn place_of(path: &Path) -> usize {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(path);
    usize::try_from(hash % LOCKS.len() as u64).unwrap_or_default()
}

fn lock_at(place: usize) -> MutexGuard<'static, ()> {
    let [first, ..] = &LOCKS;
    LOCKS.get(place).unwrap_or(first).lock()
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
                "was removed since it was read; nothing was written; read it again, then write it anew",
            ),
        };
    };
    located.file()?;
    // Only one name: others may be outside the folder, and would keep the old content.
    if found.nlink() > 1 {
        return Err(FileError::HardLink { path: located.written.clone() });
    }
    let Some(known) = known else {
        return stale("was not read in this conversation; nothing was written; read it first");
    };
    let content = read_file(located, limit)?;
    if content.digest != known.digest {
        return stale("changed since it was read; nothing was written; read it again");
    }
    Ok(Some(content))
}

/// Writes a temporary file next to the target, and gives it the target's name.
fn put(
    located: &LocatedEntry,
    old: Option<&Metadata>,
    content: &[u8],
) -> Result<Option<std::time::SystemTime>, FileError> {
    let failed = |error| located.failed(error);
    let Some(name) = &located.name else {
        return Err(located.file().err().unwrap_or(FileError::Cancelled));
    };
    let (file, temporary) = temporary(&located.dir, old.is_some()).map_err(failed)?;
    let removed = RemoveGuard { dir: &located.dir, name: &temporary };
    let written = (&file).write_all(content);
    written.and_then(|()| keep_mode(&file, old)).and_then(|()| file.sync_all()).map_err(failed)?;
    let modified = file.metadata().ok().and_then(|found| modified(&found));
    match old {
        Some(_) => located.dir.rename(&temporary, &located.dir, name).map_err(failed)?,
        None => {
            publish((&located.dir, &temporary), (&located.dir, name)).map_err(
                |error| match error.kind() {
                    io::ErrorKind::AlreadyExists => FileError::Stale {
                        path: located.written.clone(),
                        problem: "was created meanwhile; nothing was written; read it first",
                    },
                    _ => failed(error),
                },
            )?;
        }
    }
    drop(removed);
    sync_folder(&located.dir);
    Ok(modified)
}

/// Gives a file another name, which must not be taken.
#[cfg(not(portable))]
pub(super) fn publish(from: (&Dir, &OsStr), to: (&Dir, &OsStr)) -> io::Result<()> {
    use rustix::{
        fs::{RenameFlags, renameat_with},
        io::Errno,
    };
    match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // The file system or the kernel lacks it.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => publish_checked(from, to),
        renamed => Ok(renamed?),
    }
}

#[cfg(portable)]
pub(super) use publish_checked as publish;

/// The same without help of the system: another program may take the name in the moment between the
/// check and the renaming.
pub(super) fn publish_checked(from: (&Dir, &OsStr), to: (&Dir, &OsStr)) -> io::Result<()> {
    match to.0.symlink_metadata(to.1) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => from.0.rename(from.1, to.0, to.1),
        Err(error) => Err(error),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// A new file. One that replaces another is at first its owner's alone, since the other may be.
fn temporary(dir: &Dir, is_private: bool) -> io::Result<(File, OsString)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if is_private {
        make_private(&mut options);
    }
    for _ in 0..ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".toolcrib-{}-{number}.tmp", process::id()));
        match dir.open_with(&name, &options) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (file, name)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(not(portable))]
fn make_private(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt as _;
    options.mode(0o600);
}

#[cfg(portable)]
fn make_private(_: &mut OpenOptions) {}

/// The mode of the old file, without the bits that run it as another user.
#[cfg(not(portable))]
fn keep_mode(file: &File, old: Option<&Metadata>) -> io::Result<()> {
    use cap_std::fs::PermissionsExt as _;
    let Some(old) = old else { return Ok(()) };
    file.set_permissions(Permissions::from_mode(old.permissions().mode() & 0o777))
}

#[cfg(portable)]
fn keep_mode(file: &File, old: Option<&Metadata>) -> io::Result<()> {
    let permissions: Option<Permissions> = old.map(Metadata::permissions);
    permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))
}

/// Makes the new name last through a power failure, where folders can be synchronized.
pub(super) fn sync_folder(dir: &Dir) {
    if let Ok(folder) = dir.open(".") {
        let _ = folder.sync_all();
    }
}

/// Removes a temporary file, also one that was not renamed because of an error.
struct RemoveGuard<'a> {
    dir: &'a Dir,
    name: &'a OsStr,
}

impl Drop for RemoveGuard<'_> {
    fn drop(&mut self) {
        let _ = self.dir.remove_file(self.name);
    }
}

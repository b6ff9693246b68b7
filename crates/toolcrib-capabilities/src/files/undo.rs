//! Reverts the last change of a path.

use toolcrib_core::{ToolContext, ToolError};

use super::{
    FilesHandle,
    decode::TextFile,
    edit::diff,
    error::FileError,
    locate::{LocatedEntry, Purpose},
    locks::{lock, lock_both},
    path::RelativePath,
    put::{check_changeable, put},
    read::{FileContent, read_file, record_of},
    rename::rename,
    trash::{KeptFile, KeptKind, Trash},
    write::check_names,
};

/// The change that an undo reverted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UndoResult {
    /// The content before a write or an edit is there again.
    #[non_exhaustive]
    Replaced {
        /// The difference in the unified format, without the names of files; empty for contents that are
        /// not text.
        diff: String,
    },
    /// A file that a write had created is removed.
    Removed,
    /// A removed file is there again.
    Restored,
    /// A moved file is at its former path.
    #[non_exhaustive]
    MovedBack {
        /// The former path, where the file is again.
        path: String,
    },
}

impl FilesHandle {
    /// Reverts the last change of a path that was a [model's write](Self::write_of_model), an
    /// [edit](Self::edit), a [removal](Self::remove), or a [move](Self::rename) to this path; then the
    /// one before it. The former content comes from the trash, which receives what is replaced now.
    /// Calls of [`write`](Self::write) and [`create`](Self::create) are not reverted.
    ///
    /// The file must be as that change left it, and as the conversation has read it, if it has. One that
    /// it has not read must be read before it is written.
    ///
    /// # Errors
    /// A [`ToolError`] with a [`FileError`] as its cause; nothing has changed then. As for a write;
    /// [`FileError::NothingToUndo`]; [`FileError::Exists`] for a removed or moved file whose path is taken.
    pub async fn undo(&self, cx: &ToolContext, path: &str) -> Result<UndoResult, ToolError> {
        self.check_writable().map_err(FileError::into_tool_error)?;
        let path = RelativePath::parse(path).map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, cx, _| {
            let Some(trash) = handle.trash() else {
                return Err(FileError::NoTrash { name: handle.shared_name() });
            };
            let trash = Trash::open(trash).map_err(|error| FileError::io(path.written(), error))?;
            Undo { handle, cx, path: &path, trash }.run()
        })
        .await
    }
}

struct Undo<'a> {
    handle: &'a FilesHandle,
    cx: &'a ToolContext,
    path: &'a RelativePath,
    trash: Trash,
}

impl Undo<'_> {
    fn run(&self) -> Result<UndoResult, FileError> {
        let resolved = match self.locate(Purpose::Replace) {
            Ok(located) => located.path,
            // Its folder may have been removed too.
            Err(FileError::NotFound { .. }) => self.handle.top().path.join(self.path.joined()),
            Err(error) => return Err(error),
        };
        let below = self.handle.below(&resolved);
        let last = || self.trash.last(below).map_err(|error| self.failed(error));
        let nothing = || FileError::NothingToUndo { path: self.path.written().to_owned() };
        let kept = last()?.ok_or_else(nothing)?;
        let from = (kept.kind == KeptKind::Moved).then(|| self.former_path(&kept)).transpose()?;
        let _locked = match &from {
            Some(from) => lock_both(&resolved, &self.handle.top().path.join(from.joined())),
            None => (lock(&resolved), None),
        };
        if last()?.as_ref() != Some(&kept) {
            return Err(FileError::Unsettled { path: self.path.written().to_owned() });
        }
        match (kept.kind, from) {
            (KeptKind::Moved, Some(from)) => self.move_back(&kept, &from),
            (KeptKind::Removed, _) => {
                let located = self.locate(Purpose::Create)?;
                self.trash.give_back(&kept, &located)?;
                self.forget(&located);
                Ok(UndoResult::Restored)
            }
            (kind, _) => self.revert(&kept, kind == KeptKind::Created),
        }
    }

    fn locate(&self, purpose: Purpose) -> Result<LocatedEntry, FileError> {
        self.handle.top().locate(self.path, purpose)
    }

    fn failed(&self, error: std::io::Error) -> FileError {
        FileError::io(self.path.written(), error)
    }

    fn forget(&self, located: &LocatedEntry) {
        if let Some(reads) = self.cx.reads() {
            reads.forget(&located.path);
        }
    }

    fn former_path(&self, kept: &KeptFile) -> Result<RelativePath, FileError> {
        let limit = self.handle.limits().max_file_bytes;
        let former = self.trash.read(kept, limit).map_err(|error| self.failed(error))?;
        RelativePath::parse(&String::from_utf8_lossy(&former))
    }

    fn move_back(&self, kept: &KeptFile, from: &RelativePath) -> Result<UndoResult, FileError> {
        let moved = self.locate(Purpose::Replace)?;
        check_changeable(&moved)?;
        let former = self.handle.top().locate(from, Purpose::Create)?;
        rename(&moved, &former)?;
        self.trash.delete(kept);
        if let Some(reads) = self.cx.reads() {
            let read = reads.get(&moved.path);
            reads.forget(&moved.path);
            match read {
                Some(read) => reads.record(former.path, read),
                None => reads.forget(&former.path),
            }
        }
        Ok(UndoResult::MovedBack { path: from.written().to_owned() })
    }

    /// Reverts a write: puts back the kept content, or removes the file that is new.
    fn revert(&self, kept: &KeptFile, is_new: bool) -> Result<UndoResult, FileError> {
        let stale = |problem| FileError::Stale { path: self.path.written().to_owned(), problem };
        let limit = self.handle.limits().max_file_bytes;
        let located = self.locate(Purpose::Replace)?;
        let Some(found) = &located.found else {
            return Err(stale("was removed or moved since its last change; nothing was undone"));
        };
        check_changeable(&located)?;
        check_names(&located, found)?;
        let present = read_file(self.cx, &located, limit)?;
        let known = self.cx.reads().and_then(|reads| reads.get(&located.path));
        if known.as_ref().is_some_and(|known| known.digest != present.digest) {
            return Err(stale("changed since it was read; nothing was undone; read it again"));
        }
        if !kept.left(&present.digest) {
            return Err(stale(
                "was changed by others since its last change by these tools; nothing was undone; \
                 read it, then change it with an edit",
            ));
        }
        let below = self.handle.below(&located.path);
        if is_new {
            self.trash.take(KeptKind::Reverted, below, &located)?;
            self.trash.delete(kept);
            self.forget(&located);
            return Ok(UndoResult::Removed);
        }
        let former = self.trash.read(kept, limit).map_err(|error| self.failed(error))?;
        let not_kept = |source| FileError::NotKept { path: located.written.clone(), source };
        let reverted =
            self.trash.keep(KeptKind::Reverted, below, &present.bytes, None).map_err(not_kept)?;
        let former = FileContent::of(former);
        let modified = put(&located, Some(found), &former.bytes)
            .inspect_err(|_| self.trash.delete(&reverted))?;
        self.trash.delete(kept);
        match (self.cx.reads(), known) {
            (Some(reads), Some(_)) => {
                let former = FileContent { modified, ..former.clone() };
                reads.record(located.path.clone(), record_of(self.cx, &former));
            }
            _ => self.forget(&located),
        }
        let texts = (TextFile::of(&present.bytes), TextFile::of(&former.bytes));
        let diff = match texts {
            (Some(present), Some(former)) => diff(&present.text, &former.text),
            _ => String::new(),
        };
        Ok(UndoResult::Replaced { diff })
    }
}

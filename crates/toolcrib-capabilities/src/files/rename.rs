//! Moves files within a folder.

use std::io;

use toolcrib_core::{ToolContext, ToolError};

use super::{
    FilesHandle,
    error::FileError,
    locate::{LocatedEntry, Purpose},
    locks::lock_both,
    path::RelativePath,
    put::{check_changeable, publish, sync_folder},
    trash::{KeptKind, Trash},
};

impl FilesHandle {
    /// Gives a file another path in the folder. Missing folders are created. A file at the new path is
    /// never replaced. The content is the same, so a file may be moved that was never read; one that
    /// was read counts as read at its new path.
    ///
    /// # Errors
    /// A [`ToolError`] with a [`FileError`] as its cause; no file has moved then.
    pub async fn rename(&self, cx: &ToolContext, from: &str, to: &str) -> Result<(), ToolError> {
        self.check_writable().map_err(FileError::into_tool_error)?;
        let from = RelativePath::parse(from).map_err(FileError::into_tool_error)?;
        let to = RelativePath::parse(to).map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, cx, _| {
            let old = handle.top().locate(&from, Purpose::Replace)?;
            // Before a folder is created.
            check_changeable(&old)?;
            let new = handle.top().locate(&to, Purpose::Create)?;
            let _locked = lock_both(&old.path, &new.path);
            let (old, new) = (
                handle.top().locate(&from, Purpose::Replace)?,
                handle.top().locate(&to, Purpose::Create)?,
            );
            rename(&old, &new)?;
            // The file has moved, whether or not this can be undone.
            if let Some(trash) = handle.trash().and_then(|trash| Trash::open(trash).ok())
                && let Some(from) = handle.below(&old.path).to_str()
            {
                let to = handle.below(&new.path);
                let _ = trash.keep(KeptKind::Moved, to, from.as_bytes(), None);
            }
            if let Some(reads) = cx.reads() {
                let read = reads.get(&old.path);
                reads.forget(&old.path);
                // A record of an earlier file at the new path is one of another content.
                match read {
                    Some(read) => reads.record(new.path, read),
                    None => reads.forget(&new.path),
                }
            }
            Ok(())
        })
        .await
    }
}

pub(super) fn rename(old: &LocatedEntry, new: &LocatedEntry) -> Result<(), FileError> {
    let exists = || FileError::Exists { path: new.written.clone() };
    let (from, _) = old.file()?;
    let to = match (&new.name, &new.found) {
        (Some(name), None) => name,
        (_, Some(found)) if found.is_dir() => {
            let problem = "is a folder; write the new path with its file name";
            return Err(FileError::Path { path: new.written.clone(), problem });
        }
        _ => return Err(exists()),
    };
    publish((&old.dir, from), (&new.dir, to)).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(),
        _ => new.failed(error),
    })?;
    sync_folder(&new.dir);
    sync_folder(&old.dir);
    Ok(())
}

//! Removes files: moves them to the trash folder.

use toolcrib_core::{ToolContext, ToolError};

use super::{
    FilesHandle,
    error::FileError,
    locate::Purpose,
    locks::lock,
    path::RelativePath,
    put::check_changeable,
    read::read_file,
    trash::{KeptKind, Trash},
};

impl FilesHandle {
    /// Moves a file to the trash folder, and returns its name there. A file that changed since the
    /// conversation read it is not removed; one that was never read is.
    ///
    /// The trash contains at most 1,000 removed files with 256 MiB; beyond that, the oldest are deleted.
    ///
    /// # Errors
    /// A [`ToolError`] with a [`FileError`] as its cause; nothing has changed then.
    pub async fn remove(&self, cx: &ToolContext, path: &str) -> Result<String, ToolError> {
        self.check_writable().map_err(FileError::into_tool_error)?;
        let path = RelativePath::parse(path).map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, cx, _| {
            let Some(trash) = handle.trash() else {
                return Err(FileError::NoTrash { name: handle.shared_name() });
            };
            let located = handle.top().locate(&path, Purpose::Replace)?;
            let _locked = lock(&located.path);
            let located = handle.top().locate(&path, Purpose::Replace)?;
            check_changeable(&located)?;
            if let Some(known) = cx.reads().and_then(|reads| reads.get(&located.path)) {
                let content = read_file(cx, &located, handle.limits().max_file_bytes)?;
                if content.digest != known.digest {
                    let problem = "changed since it was read; it was not removed; read it again";
                    return Err(FileError::Stale { path: located.written.clone(), problem });
                }
            }
            let trash = Trash::open(trash).map_err(|error| located.failed(error))?;
            let kept = trash.take(KeptKind::Removed, handle.below(&located.path), &located)?.name;
            if let Some(reads) = cx.reads() {
                reads.forget(&located.path);
            }
            Ok(kept)
        })
        .await
    }
}

//! The folders of a Rust tool.

use std::sync::Arc;

use toolcrib_core::{Capabilities, ToolContext, ToolError};

use super::{Files, FilesHandle};

/// The folders that a tool declares, as a handle of its body:
/// `cx.handle::<FileFolders>()?.get("notes")?`.
///
/// A host adds its folders with `HostCapabilities::files`, and each call receives those that its
/// tool declares: read-only for `files`, writable for `write_files`.
#[derive(Debug, Clone, Default)]
pub struct FileFolders(Arc<[FilesHandle]>);

impl FileFolders {
    /// The declared folder of that name.
    ///
    /// # Errors
    /// `not_available` if the tool does not declare it.
    pub fn get(&self, name: &str) -> Result<&FilesHandle, ToolError> {
        self.0.iter().find(|handle| handle.name() == name).ok_or_else(|| {
            ToolError::not_set_up("a folder")
                .caused_by(format!("the tool does not declare the folder `{name}`"))
        })
    }

    /// The folders that the call may use.
    pub fn iter(&self) -> impl Iterator<Item = &FilesHandle> {
        self.0.iter()
    }

    /// The handles for the declared folders, of those of a host; or why there are none, for the
    /// operator. `None` for a tool that declares no folders.
    pub(crate) fn grant(
        all: &[Files],
        declared: &Capabilities,
        cx: &ToolContext,
    ) -> Option<Result<Self, String>> {
        declared.all_files().next()?;
        let handle = |name: &Arc<str>, writes: bool| {
            let files = all.iter().find(|files| files.name() == name);
            let files = files.ok_or_else(|| format!("no folder `{name}` is set up"))?;
            if !cx.reaches_files(name) {
                return Err(format!("the personality does not reach the folder `{name}`"));
            }
            match writes {
                false => Ok(files.read_only()),
                true if files.is_writable() => Ok(files.writable()),
                true => Err(format!("the folder `{name}` is read-only")),
            }
        };
        // Writable ones first: a folder that is declared twice is found as writable.
        let written = declared.write_files.iter().map(|name| handle(name, true));
        let read = declared.files.iter().map(|name| handle(name, false));
        Some(written.chain(read).collect::<Result<_, _>>().map(Self))
    }
}

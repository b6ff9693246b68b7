//! A folder on disk, and contexts of calls.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use tempfile::TempDir;
use toolcrib_capabilities::files::{FileError, Files, FilesHandle, FilesSpec, Replacement};
use toolcrib_core::{FileReads, ToolContext, ToolContextParts, ToolError};

/// A folder `notes` and a folder `outside` next to it.
pub(crate) struct Disk {
    dir: TempDir,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let disk = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(disk.notes()).unwrap();
        fs::create_dir(disk.outside()).unwrap();
        disk
    }

    pub(crate) fn notes(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("notes")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("notes-outside")
    }

    pub(crate) fn trash(&self) -> PathBuf {
        self.dir.path().join("trash")
    }

    /// Writes a file into the folder, with its folders.
    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        put(&self.notes().join(path), content);
        self
    }

    pub(crate) fn get(&self, path: &str) -> String {
        fs::read_to_string(self.notes().join(path)).unwrap()
    }

    pub(crate) fn spec(&self) -> FilesSpec {
        FilesSpec::new("notes", self.notes()).writable().trash(self.trash())
    }

    pub(crate) fn files(&self) -> FilesHandle {
        Files::open(self.spec()).unwrap().writable()
    }
}

pub(crate) fn put(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A call in a new conversation.
pub(crate) fn conversation() -> ToolContext {
    call(&Arc::default())
}

/// A call in a conversation that has read these files.
pub(crate) fn call(reads: &Arc<FileReads>) -> ToolContext {
    ToolContextParts { reads: Some(Arc::clone(reads)), ..ToolContextParts::detached() }.into()
}

/// The cause of an error.
pub(crate) fn cause<T: std::fmt::Debug>(result: &Result<T, ToolError>) -> &FileError {
    FileError::of(result.as_ref().unwrap_err()).unwrap()
}

/// The model's text of an error.
pub(crate) fn text<T: std::fmt::Debug>(result: &Result<T, ToolError>) -> &str {
    &result.as_ref().unwrap_err().message
}

/// One replacement of a text that occurs once.
pub(crate) fn one(old: &str, new: &str) -> [Replacement; 1] {
    [Replacement::new(old, new)]
}

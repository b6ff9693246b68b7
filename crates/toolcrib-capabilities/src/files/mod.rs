//! Folders whose paths cannot be left, with a record of what was read.
//!
//! - [`Files::open`] opens a folder of the host, under a name.
//! - [`Files::read_only`] and [`Files::writable`] return the [`FilesHandle`]s for bodies. A handle
//!   cannot be widened.
//! - [`FileFolders`] is the handle of a Rust tool that declares folders among its capabilities.
//! - [`Storage`] is the handle of one that declares the agent's own area.
//!
//! # Containment
//! Paths are relative, with `/` between names. Each folder on the way is opened from the one before
//! it, without following links; the targets of links are resolved here, name by name. So absolute
//! paths, `..`, links that leave, sibling folders with a common prefix, and swaps of folders and
//! links by other programs do not lead out. Pipes, sockets and devices are refused without being
//! opened, and never waited for.
//!
//! # The floor
//! Credentials, keys, browser profiles, the internals of git repositories and the state of this
//! program can be neither read nor written, and start-up files, configurations that run programs,
//! and the declarations of a project cannot be written, whatever the folder is. The rules apply to
//! the resolved path.
//!
//! # Stale writes
//! Each read is recorded in [`ToolContext::reads`]. A write over a file that changed since, by its
//! digest, or that the conversation never read, is refused before anything is written, with the
//! code [`StaleWrite`](toolcrib_core::ErrorCode::StaleWrite). Two calls of one batch that write the
//! same file wait for each other, so that the second one is compared with the result of the first.
//!
//! # Limits
//! See [`FileLimits`]. All work runs on the blocking pool, at most 8 calls per folder at a time, and
//! ends after cancellation, except for a single write, which is finished.

mod decode;
mod edit;
mod error;
mod floor;
mod granted;
mod ignore_rules;
mod left_out;
mod line_ends;
mod list;
mod locate;
mod locks;
mod part;
mod path;
mod put;
mod read;
mod remove;
mod rename;
mod search;
mod search_query;
mod search_work;
mod shown;
mod storage;
mod trash;
mod undo;
mod window;
mod work_progress;
mod write;

use std::{
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_std::{ambient_authority, fs::Dir};
use tokio::{sync::Semaphore, task::spawn_blocking};
use tokio_util::sync::CancellationToken;
use toolcrib_core::{ToolContext, ToolError};

#[doc(hidden)]
pub use self::storage::folder_of;
pub use self::{
    edit::{EditProblem, Replacement},
    error::{FileError, OpenFilesError},
    granted::FileFolders,
    left_out::{LeftOut, LeftOutReason},
    line_ends::LineEnds,
    list::{Entry, EntryKind, Listing},
    part::{FileLines, FileRange},
    read::{FileContent, FilePart},
    search_query::{FileCount, FileMatches, Match, Search, SearchMode},
    storage::{Storage, StorageArea},
    undo::UndoResult,
    write::{EditResult, WriteResult},
};
use self::{
    floor::{Access, Floor},
    locate::OpenFolder,
};

/// The calls that work in one folder at a time. Each may have a whole file in memory, several times.
const MOST_WORKERS: usize = 8;

/// The limits of work in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileLimits {
    /// The largest file that is read or written, in bytes. Default: 16 MiB.
    pub max_file_bytes: u64,
    /// The most names that a listing returns. Default: 1,000.
    pub max_entries: usize,
    /// The most levels of folders that a listing or a search enters. Default: 16, at most 64.
    pub max_depth: usize,
    /// The most bytes of files that one search reads. Default: 256 MiB.
    pub max_total_bytes: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            max_file_bytes: 16 * 1024 * 1024,
            max_entries: 1_000,
            max_depth: 16,
            max_total_bytes: 256 * 1024 * 1024,
        }
    }
}

/// The description of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilesSpec {
    /// The declared name, for declarations and messages.
    pub name: Arc<str>,
    /// The folder. Links that lead to it are followed.
    pub folder: PathBuf,
    /// Whether handles may write. Default: no.
    pub write: bool,
    /// The limits.
    pub limits: FileLimits,
    /// The folder of the host that receives removed files, and what models replace. It is created when
    /// it is needed. Default: none, and nothing can be removed or undone.
    pub trash: Option<PathBuf>,
    /// Files and folders of the host that the floor protects for writing, absolute: what decides
    /// what tools may do.
    pub fixed: Vec<PathBuf>,
    /// The same for reading and writing: the host's state.
    pub closed: Vec<PathBuf>,
    /// Whether the folder is a part of the host's state that is meant for a tool: the floor then applies
    /// to the names below it. Default: no.
    pub of_state: bool,
}

impl FilesSpec {
    /// A read-only folder with the default limits.
    pub fn new(name: impl Into<Arc<str>>, folder: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            folder: folder.into(),
            write: false,
            limits: FileLimits::default(),
            trash: None,
            fixed: Vec::new(),
            closed: Vec::new(),
            of_state: false,
        }
    }

    /// Lets handles write to the folder.
    #[must_use]
    pub fn writable(mut self) -> Self {
        self.write = true;
        self
    }

    /// Sets the folder that receives removed files and what models replace.
    #[must_use]
    pub fn trash(mut self, folder: impl Into<PathBuf>) -> Self {
        self.trash = Some(folder.into());
        self
    }

    /// Opens a part of the host's own state.
    #[must_use]
    pub fn of_state(mut self) -> Self {
        self.of_state = true;
        self
    }

    /// Sets the limits of each handle.
    #[must_use]
    pub fn limits(mut self, limits: FileLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// An open folder, owned by the host. Cheap to clone; clones share it.
///
/// Neighbor: a [`FilesHandle`] is for a tool's body.
#[derive(Clone)]
pub struct Files(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    top: OpenFolder,
    write: bool,
    limits: FileLimits,
    trash: Option<PathBuf>,
    working: Arc<Semaphore>,
}

impl Files {
    /// Opens the folder of a specification. Blocks shortly. The folder stays the same when its path
    /// is moved or replaced later.
    ///
    /// # Errors
    /// [`OpenFilesError`].
    pub fn open(spec: FilesSpec) -> Result<Self, OpenFilesError> {
        let FilesSpec { name, folder, write, limits, trash, fixed, closed, of_state } = spec;
        let failed = |source| OpenFilesError::Io { folder: folder.clone(), source };
        let path = std::path::absolute(&folder).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        if !path.is_dir() {
            return Err(OpenFilesError::NotAFolder { folder });
        }
        let floor = Floor::new(&fixed, &closed);
        let floor = if of_state { floor.of_own(&path) } else { floor };
        if let Some(reason) = floor.objection(&path, Access::Read) {
            return Err(OpenFilesError::Protected { folder, reason });
        }
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).map_err(failed)?;
        let top = OpenFolder { dir, path, floor };
        let working = Arc::new(Semaphore::new(MOST_WORKERS));
        Ok(Self(Arc::new(Shared { name, top, write, limits, trash, working })))
    }

    /// The name by which it is declared.
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// The folder, with its symlinks resolved.
    pub fn folder(&self) -> &Path {
        &self.0.top.path
    }

    /// Whether handles may write at all.
    pub fn is_writable(&self) -> bool {
        self.0.write
    }

    /// A handle that only reads.
    pub fn read_only(&self) -> FilesHandle {
        FilesHandle { shared: Arc::clone(&self.0), can_write: false }
    }

    /// A handle that can also write, unless the folder is [read-only](Self::is_writable).
    pub fn writable(&self) -> FilesHandle {
        FilesHandle { shared: Arc::clone(&self.0), can_write: self.0.write }
    }
}

toolcrib_core::__internal::debug_fields!(
    Files,
    files,
    name = files.0.name,
    folder = files.0.top.path,
    write = files.0.write,
    ..
);

/// The handle of a tool's body: read-only or writable, as the host decided. Cheap to clone.
///
/// Each operation takes the context of the call: for cancellation, for the personality of the turn,
/// which may not reach the folder, and for the record of what the conversation has read.
///
/// Neighbor: a [`Files`] is owned by the host and creates handles.
#[derive(Clone)]
pub struct FilesHandle {
    shared: Arc<Shared>,
    can_write: bool,
}

impl FilesHandle {
    /// The declared name of the folder.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Whether it is read-only.
    pub fn is_read_only(&self) -> bool {
        !self.can_write
    }

    /// The limits of the folder.
    pub fn limits(&self) -> &FileLimits {
        &self.shared.limits
    }

    fn top(&self) -> &OpenFolder {
        &self.shared.top
    }

    fn trash(&self) -> Option<&Path> {
        self.shared.trash.as_deref()
    }

    /// A resolved path from the top of the folder.
    fn below<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.top().path).unwrap_or(path)
    }

    fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.shared.name)
    }

    fn check_writable(&self) -> Result<(), FileError> {
        match self.can_write {
            true => Ok(()),
            false => Err(FileError::ReadOnly { name: self.shared_name() }),
        }
    }

    /// Runs work on the blocking pool, if the turn reaches the folder.
    async fn run<T: Send + 'static>(
        &self,
        cx: &ToolContext,
        work: impl FnOnce(&Self, &ToolContext, &CancellationToken) -> Result<T, FileError>
        + Send
        + 'static,
    ) -> Result<T, ToolError> {
        if !cx.reaches_files(self.name()) {
            return Err(FileError::NotReached { name: self.shared_name() }.into_tool_error());
        }
        let cancel = cx.cancellation().child_token();
        let _dropped = cancel.clone().drop_guard();
        let cancelled = || FileError::Cancelled.into_tool_error();
        let working = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled()),
            working = Arc::clone(&self.shared.working).acquire_owned() => working,
        };
        let (handle, cx) = (self.clone(), cx.clone());
        let worked = spawn_blocking(move || {
            // Until the work ends, also if nothing waits for it any more.
            let _working = working;
            if cancel.is_cancelled() {
                Err(FileError::Cancelled)
            } else {
                work(&handle, &cx, &cancel)
            }
        });
        match worked.await {
            Ok(outcome) => outcome.map_err(FileError::into_tool_error),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime shut down before it began.
                Err(_) => Err(cancelled()),
            },
        }
    }
}

toolcrib_core::__internal::debug_fields!(
    FilesHandle,
    handle,
    name = handle.shared.name,
    can_write = handle.can_write
);

//! The memory of a project's agent, and its keys and sessions in the store.

use std::{fs::DirBuilder, io, os::unix::fs::DirBuilderExt as _, sync::Arc};

use toolcrib_capabilities::files::{FileLimits, Files, FilesSpec};
use toolcrib_config::{Diagnostic, Problems};
use toolcrib_tools::{ExternalAccess, MemoryParts};

use crate::{
    bind::part::Part,
    file::ToolSection,
    user::{options::Mode, own_store::OwnStore, state::StateFolder},
};

/// The folder of memories in the state folder.
const FOLDER: &str = "memory";

/// The largest file of a memory that is read; the tools keep theirs smaller.
const MOST_BYTES: u64 = 256 * 1024;

/// The memory and the store.
pub(crate) struct ProjectStorage {
    /// `None` if nothing is read or written.
    memory: Option<Files>,
    pub(crate) store: OwnStore,
}

impl ProjectStorage {
    /// Opens the folder of memories if a tool needs it, and the project is loaded to run calls. Problems
    /// are recorded.
    pub(crate) fn open(
        mode: Mode,
        parts: &[Part],
        state: &StateFolder,
        store: OwnStore,
        problems: &Problems,
    ) -> Self {
        let needs = Part::tools(parts).find(|tool| has_memory(tool));
        let memory = needs.filter(|_| matches!(mode, Mode::Run { .. })).and_then(|tool| {
            let refused = |error: io::Error| {
                let message = format!("the folder of the memory cannot be used: {error}");
                problems.push(Diagnostic::error(&tool.at, message));
            };
            open(state).map_err(refused).ok()
        });
        Self { memory, store }
    }

    pub(crate) fn memory(&self) -> MemoryParts {
        let store = self.store.clone();
        let sessions = Arc::new(move |owner: &_, search: &_| store.search(owner, search));
        MemoryParts { files: self.memory.clone(), sessions }
    }
}

fn has_memory(tool: &ToolSection) -> bool {
    let mut accesses = tool.kind.iter().flat_map(|kind| kind.external_access());
    accesses.any(|access| matches!(access, ExternalAccess::Memory))
}

fn open(state: &StateFolder) -> io::Result<Files> {
    state.make()?;
    let folder = state.folder(FOLDER)?;
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let trash = state.folder("trash")?.join(FOLDER);
    let mut limits = FileLimits::default();
    limits.max_file_bytes = MOST_BYTES;
    let spec = FilesSpec::new(FOLDER, folder).writable().trash(trash).limits(limits).of_state();
    Files::open(spec).map_err(io::Error::other)
}

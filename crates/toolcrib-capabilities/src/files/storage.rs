//! The agent's own area: a folder of the host's state for each personality.

use std::{collections::HashMap, fmt::Write as _, fs, path::PathBuf, sync::Arc};

use parking_lot::Mutex;
use toolcrib_core::ToolContext;

use super::{Files, FilesHandle, FilesSpec};

/// The area of all agents of a host: a folder with one subfolder for each personality, which is created
/// when a tool first needs it. Clones share it.
#[derive(Clone)]
pub struct StorageArea(Arc<Shared>);

struct Shared {
    folder: PathBuf,
    open: Mutex<HashMap<Arc<str>, Files>>,
}

impl StorageArea {
    /// An area in a folder, such as `storage` in a state folder. It is created if it is missing.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Shared { folder: folder.into(), open: Mutex::default() }))
    }

    /// The handle for a call; or why there is none, for the operator.
    pub(crate) fn grant(&self, cx: &ToolContext) -> Result<Storage, String> {
        let personality = cx.personality();
        let mut open = self.0.open.lock();
        let files = match open.get(personality) {
            Some(files) => files.clone(),
            None => {
                let files = self.open(personality)?;
                open.insert(personality.into(), files.clone());
                files
            }
        };
        Ok(Storage { files: files.writable(), cx: cx.clone().for_own_files() })
    }

    #[allow(clippy::disallowed_methods, reason = "the host's own folder, by its own path")]
    fn open(&self, personality: &str) -> Result<Files, String> {
        let folder = self.0.folder.join(folder_of(personality));
        let shown = folder.display().to_string();
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        make_private(&mut builder);
        builder.create(&folder).map_err(|error| format!("{shown} cannot be created: {error}"))?;
        let trash = self.0.folder.join(".removed");
        let spec = FilesSpec::new("storage", folder).writable().trash(trash).of_state();
        Files::open(spec).map_err(|error| error.to_string())
    }
}

#[cfg(not(portable))]
fn make_private(builder: &mut fs::DirBuilder) {
    use std::os::unix::fs::DirBuilderExt as _;
    builder.mode(0o700);
}

#[cfg(portable)]
fn make_private(_: &mut fs::DirBuilder) {}

toolcrib_core::__internal::debug_fields!(StorageArea, area, area.0.folder);

/// The folder of the turn's personality, for a tool that declares
/// [`storage`](toolcrib_core::Capabilities::storage): `cx.handle::<Storage>()?`. A personality
/// cannot reach the files of another.
///
/// Operations take [`context`](Self::context) instead of the context of the call: other folders that a
/// personality may reach do not concern this one.
#[derive(Clone)]
pub struct Storage {
    files: FilesHandle,
    cx: ToolContext,
}

toolcrib_core::__internal::debug_fields!(Storage, storage, storage.files);

impl Storage {
    /// The folder that contains the stored files.
    pub fn files(&self) -> &FilesHandle {
        &self.files
    }

    /// The context for operations on it.
    pub fn context(&self) -> &ToolContext {
        &self.cx
    }
}

/// A name of a folder for an id: different ones for different ids, also where case is ignored.
pub fn folder_of(id: &str) -> String {
    let mut folder = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => folder.push(char::from(byte)),
            other => {
                let _ = write!(folder, "%{other:02x}");
            }
        }
    }
    folder
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::folder_of;

    proptest! {
        #[test]
        fn ids_have_folders_of_their_own(one in "\\PC{1,8}", other in "\\PC{1,8}") {
            let folder = folder_of(&one);
            prop_assert!(folder.bytes().all(|b| b.is_ascii_graphic() && b != b'/' && b != b'.'));
            prop_assert_eq!(folder == folder_of(&other), one == other);
        }
    }
}

//! Files with the stderr of servers that are programs, while they run and after.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use parking_lot::Mutex;
use toolcrib_capabilities::__internal::no_follow;
use toolcrib_core::Digest;
use toolcrib_engine::Redactor;

use super::state::StateFolder;

/// The folder in the state folder.
const FOLDER: &str = "logs";

/// A larger file is replaced, and kept once under another name.
const MOST_BYTES: u64 = 1024 * 1024;

/// The name of a server's file. Imported files share a state folder, and may contain different servers
/// of one name: `import` is the one that declares it.
pub(crate) fn file_name(server: &str, import: Option<&str>) -> String {
    let Some(import) = import else { return format!("{server}.log") };
    let path = Path::new(import).canonicalize().unwrap_or_else(|_| import.into());
    let digest = Digest::of(path.as_os_str().as_encoded_bytes()).to_string();
    format!("{server}-{}.log", digest.get(..16).unwrap_or(&digest))
}

/// The file of a server, by its name.
pub(crate) fn path_of(state: &Path, file_name: &str) -> PathBuf {
    state.join(FOLDER).join(file_name)
}

/// Writes the lines of one server, redacted, each with the time. A file that cannot be written loses
/// lines; the server continues.
pub(crate) struct ServerLog {
    state: StateFolder,
    path: PathBuf,
    redactor: Redactor,
    file: Mutex<Option<(File, u64)>>,
}

impl ServerLog {
    pub(crate) fn new(state: &StateFolder, file_name: &str, redactor: Redactor) -> Self {
        let path = path_of(state.path(), file_name);
        Self { state: state.clone(), path, redactor, file: Mutex::default() }
    }

    pub(crate) fn line(&self, line: &str) {
        let time = humantime::format_rfc3339_millis(SystemTime::now());
        let line = format!("{time} {}\n", self.redactor.text(line));
        let mut file = self.file.lock();
        if self.write(&mut file, &line).is_err() {
            *file = None;
        }
    }

    fn write(&self, open: &mut Option<(File, u64)>, line: &str) -> io::Result<()> {
        if open.as_ref().is_some_and(|(_, bytes)| *bytes >= MOST_BYTES) {
            *open = None;
            fs::rename(&self.path, self.path.with_extension("log.1"))?;
        }
        let (file, bytes) = match open {
            Some(open) => open,
            None => open.insert(self.open()?),
        };
        file.write_all(line.as_bytes())?;
        *bytes += line.len() as u64;
        Ok(())
    }

    fn open(&self) -> io::Result<(File, u64)> {
        self.state.make()?;
        let folder = self.state.folder(FOLDER)?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let file = no_follow().append(true).create(true).mode(0o600).open(&self.path)?;
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
    }
}

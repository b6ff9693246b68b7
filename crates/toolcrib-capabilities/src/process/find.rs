//! Lookups in the host's environment: paths of programs, and variables to pass on.

use std::{
    env,
    ffi::OsString,
    fs::{File, Metadata},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use toolcrib_core::{Digest, DigestHasher};

/// No program of that name was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FindProgramError {
    /// No folder of the `PATH` contains an executable file of that name.
    #[error("no program `{name}` on the PATH; install it, or write its path, with a `/` in it")]
    NotOnPath {
        /// The name.
        name: String,
    },
    /// The file is missing, is a folder, or is not executable.
    #[error("{file} is not an executable file")]
    NoProgram {
        /// The file.
        file: PathBuf,
    },
}

/// The digest of programs and scripts as they are now. A path that leads to no file counts as missing; of
/// a file with more than 256 MiB, the beginning counts, and the size. Blocks while it reads them.
#[expect(clippy::disallowed_methods, reason = "it reads which program an approval is about")]
pub fn program_digest<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Digest {
    const MOST_BYTES: u64 = 256 * 1024 * 1024;
    let mut hasher = DigestHasher::new();
    for path in files {
        let opened = path.metadata().ok().filter(Metadata::is_file).zip(File::open(path).ok());
        let Some((found, file)) = opened else {
            hasher.push(b"none");
            continue;
        };
        hasher.push(&found.len().to_le_bytes());
        // A file that cannot be read to its end is another program than one that can.
        if io::copy(&mut file.take(MOST_BYTES), &mut hasher).is_err() {
            hasher.push(b"unreadable");
        }
    }
    hasher.finish()
}

/// The absolute path of a program. A name with a `/` in it is a path, relative to an absolute
/// folder; any other is looked up on the `PATH` of this process, now.
///
/// # Errors
/// [`FindProgramError`] if no executable file exists.
pub fn find_program(name: &str, base_dir: &Path) -> Result<PathBuf, FindProgramError> {
    if name.contains('/') {
        let file = base_dir.join(name);
        return if is_program(&file) {
            Ok(file)
        } else {
            Err(FindProgramError::NoProgram { file })
        };
    }
    let path = env::var_os("PATH").unwrap_or_default();
    // A relative entry of the PATH depends on the host's working folder.
    let mut folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
    let found = folders.find_map(|folder| {
        let file = folder.join(name);
        (!name.is_empty() && is_program(&file)).then_some(file)
    });
    found.ok_or_else(|| FindProgramError::NotOnPath { name: name.to_owned() })
}

/// The named variables that this process has, now, to be passed on.
pub fn inherited<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(OsString, OsString)> {
    names.into_iter().filter_map(|name| Some((name.into(), env::var_os(name)?))).collect()
}

#[cfg(not(portable))]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A portable build starts none of them.
#[cfg(portable)]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

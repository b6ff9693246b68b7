//! Lookups in the host's environment: paths of programs, and variables to pass on.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

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

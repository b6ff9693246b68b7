//! What the host's environment is asked: where programs lie, and what is passed on by name.

use std::{
    env,
    ffi::OsString,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// No program of a name where it was looked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FindProgramError {
    /// In no folder of the `PATH` lies an executable file of that name.
    #[error(
        "there is no program `{name}` on the PATH; install it, or name its file with a `/` in it"
    )]
    NotOnPath {
        /// The name.
        name: String,
    },
    /// The file is missing, is a folder, or nobody may execute it.
    #[error("{file} is no program: there is no executable file of that name")]
    NoProgram {
        /// The file.
        file: PathBuf,
    },
}

/// The absolute path of a program. A name with a `/` in it is a path, relative to a folder, which is
/// absolute; any other is looked up on the `PATH` of this process, now.
///
/// # Errors
/// [`FindProgramError`] when there is no executable file.
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
    // What is relative on the PATH depends on where the host happens to stand.
    let mut folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
    let found = folders.find_map(|folder| {
        let file = folder.join(name);
        (!name.is_empty() && is_program(&file)).then_some(file)
    });
    found.ok_or_else(|| FindProgramError::NotOnPath { name: name.to_owned() })
}

/// Those of the named variables that this process has, now, to be passed on.
pub fn inherited<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(OsString, OsString)> {
    names.into_iter().filter_map(|name| Some((name.into(), env::var_os(name)?))).collect()
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

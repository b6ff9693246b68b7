//! Configuration files of other programs, read whole and replaced as a whole.

use std::{
    fs::{self, File, Permissions},
    io::{self, Read as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use toolcrib_capabilities::__internal::draft;

/// A larger file is not read.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// A file that cannot be read or replaced.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("{} cannot be used: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    #[error("{} is larger than 64 MiB", .0.display())]
    TooLarge(PathBuf),
    #[error("{} is not UTF-8 text", .0.display())]
    NotText(PathBuf),
    #[error("{} was changed by another program in the meantime; nothing was written, try again", .0.display())]
    Changed(PathBuf),
}

/// A file as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CurrentFile {
    pub(crate) text: String,
    /// Its permissions.
    pub(crate) mode: u32,
}

/// The file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<CurrentFile>, WriteError> {
    let failed = |source| WriteError::Io { path: path.to_owned(), source };
    // A pipe must not be waited for.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(WriteError::NotAFile(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(WriteError::TooLarge(path.to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| WriteError::NotText(path.to_owned()))?;
    Ok(Some(CurrentFile { text, mode: found.permissions().mode() & 0o7777 }))
}

/// Replaces a file that is still `before` by a new text, or removes it. Other programs see the old
/// file or the new one.
pub(crate) fn put(
    path: &Path,
    before: Option<&CurrentFile>,
    text: Option<&str>,
    mode: u32,
) -> Result<(), WriteError> {
    let failed = |source| WriteError::Io { path: path.to_owned(), source };
    let unchanged = || match read(path)? {
        found if found.as_ref() == before => Ok(()),
        _ => Err(WriteError::Changed(path.to_owned())),
    };
    let Some(text) = text else {
        unchanged()?;
        return fs::remove_file(path).map_err(failed);
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(failed)?;
    let draft = draft(path, 0o600, text).map_err(failed)?;
    draft.as_file().set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
    unchanged()?;
    draft.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

//! Files of the user alone, in the user's configuration folder.

pub(crate) mod vault;

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use toolcrib_capabilities::__internal::no_follow;
pub(crate) use toolcrib_capabilities::__internal::{is_of_user, is_private_folder, replace};

/// The user's configuration of Toolcrib: `toolcrib` in `$XDG_CONFIG_HOME` or `~/.config`. `None`
/// if the user has no home.
pub(crate) fn config_of_user() -> Option<PathBuf> {
    folder_of_user("XDG_CONFIG_HOME", ".config").map(|config| config.join("toolcrib"))
}

/// The user's folder that a variable names, or the default one below the home. `None` if the user
/// has no home.
#[doc(hidden)]
pub fn folder_of_user(variable: &str, below_home: &str) -> Option<PathBuf> {
    let folder = |name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        // A relative path would be found in the project.
        path.is_absolute().then_some(path)
    };
    folder(variable).or_else(|| Some(folder("HOME")?.join(below_home)))
}

/// Creates a folder for the user alone. It and the folder above it must not be changeable by others.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if is_safe(folder) {
        return Ok(());
    }
    let open = "this folder, or the one above it, is a symlink, belongs to another user, or can be \
        changed by one";
    Err(io::Error::other(open))
}

/// Whether a folder and the one above it belong to the user, and no other user can change them.
pub(crate) fn is_safe(folder: &Path) -> bool {
    [folder.parent(), Some(folder)].into_iter().flatten().all(is_private_folder)
}

/// Opens a file to read it; not through a symlink, and without waiting for the writer of a pipe.
pub(crate) fn open(path: &Path) -> io::Result<(File, fs::Metadata)> {
    let file = no_follow().read(true).open(path)?;
    let found = file.metadata()?;
    Ok((file, found))
}

/// The text of a file that only the user can read, up to a size. `None` if there is no file.
pub(crate) fn secret(path: &Path, most_bytes: u64, again: &str) -> io::Result<Option<String>> {
    let (file, found) = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) if path.is_symlink() => {
            return Err(io::Error::other(
                "it is a symlink, which is not followed; put the file itself there",
            ));
        }
        opened => opened?,
    };
    if !found.is_file() {
        return Err(io::Error::other(format!("it is not a file; remove it, and {again} again")));
    }
    let is_secret = is_of_user(&found) && found.mode() & 0o077 == 0;
    if !is_secret || !path.parent().is_some_and(is_safe) {
        let open = format!("other users can read or change it; remove it, and {again} again");
        return Err(io::Error::other(open));
    }
    text(file, most_bytes).map(Some)
}

/// The text of a file, up to a size.
pub(crate) fn text(file: File, most_bytes: u64) -> io::Result<String> {
    let mut text = String::new();
    file.take(most_bytes).read_to_string(&mut text)?;
    Ok(text)
}

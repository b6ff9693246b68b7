//! Handwritten files, read as text.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// The largest handwritten text, in bytes. A larger file is a mistake, and much of it would go to a
/// model.
pub(crate) const MAX_TEXT: u64 = 1024 * 1024;

/// The largest seed script, in bytes. It is loaded into memory.
pub(crate) const MAX_SEED: u64 = 64 * 1024 * 1024;

/// Why a file of a project cannot be used. Each message ends a sentence about the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("is an absolute path; write it relative to the project's folder")]
    Absolute,
    #[error("leads out of the project's folder; copy the needed files into the project")]
    Outside,
    #[error("leads out of the plugin's folder; copy the needed files into it")]
    OutsidePlugin,
    #[error("does not exist")]
    NotFound,
    #[error("is not a folder")]
    NotAFolder,
    #[error("is a folder, not a file")]
    Folder,
    #[error("is a device or a pipe, not a file")]
    NotAFile,
    #[error("is larger than {} MiB", .limit / 1024 / 1024)]
    TooLarge { limit: u64 },
    #[error("is not UTF-8 text")]
    NotText,
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
}

/// The text of a file that the user names, also through symlinks, of at most `limit` bytes.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, FileError> {
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FileError::NotFound,
        _ => FileError::Unreadable(error),
    })?;
    text_of(file, limit)
}

/// The text of an open file, of at most `limit` bytes, without a byte order mark, which some
/// editors write.
fn text_of(file: File, limit: u64) -> Result<String, FileError> {
    decoded(bytes_of(file, limit)?)
}

/// The content of an open file, of at most `limit` bytes.
pub(crate) fn bytes_of(file: File, limit: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => FileError::Folder,
        _ => FileError::Unreadable(error),
    })?;
    if bytes.len() as u64 > limit {
        return Err(FileError::TooLarge { limit });
    }
    Ok(bytes)
}

/// Bytes as text, without a byte order mark.
pub(crate) fn decoded(bytes: Vec<u8>) -> Result<String, FileError> {
    let text = String::from_utf8(bytes).map_err(|_| FileError::NotText)?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

//! Files and folders opened by their real path, so that the checked file is the file that is read.
//!
//! A real path, from [`Path::canonicalize`], contains no symlink. A symlink found while opening was
//! created since the check, and makes the opening fail: nothing can be read through it.

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStringExt as _},
    path::{Component, Path},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, open, openat, statat},
    io::Errno,
};

use super::text_file::FileError;

/// Opens a regular file.
pub(crate) fn open_file(real: &Path) -> Result<File, FileError> {
    // Opening a pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(open_at(real, flags).map_err(failed)?);
    let kind = file.metadata().map_err(FileError::Unreadable)?.file_type();
    if kind.is_dir() {
        Err(FileError::Folder)
    } else if kind.is_file() {
        Ok(file)
    } else {
        Err(FileError::NotAFile)
    }
}

/// The entries of a folder: names, and whether each is a file, a folder or something else.
pub(crate) fn entries(real: &Path) -> io::Result<Vec<(OsString, FileType)>> {
    let folder = open_at(real, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut found = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let kind = match entry.file_type() {
            // Some file systems do not report the type.
            FileType::Unknown => statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            known => known,
        };
        found.push((OsString::from_vec(name.to_bytes().to_vec()), kind));
    }
    Ok(found)
}

/// Walks from the root of the file system, one name at a time.
fn open_at(real: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    const PASSED: OFlags = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    const PASSED: OFlags = OFlags::RDONLY;
    let follow_none = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut names = real.components().peekable();
    if names.next() != Some(Component::RootDir) {
        return Err(Errno::INVAL);
    }
    let folder = PASSED | OFlags::DIRECTORY | follow_none;
    let mut at = open("/", folder, Mode::empty())?;
    while let Some(component) = names.next() {
        let Component::Normal(name) = component else { return Err(Errno::INVAL) };
        let flags = if names.peek().is_some() { folder } else { flags | follow_none };
        at = openat(&at, name, flags, Mode::empty())?;
    }
    Ok(at)
}

fn failed(error: Errno) -> FileError {
    match error {
        // A symlink replaces the file, or a folder on the path.
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP => FileError::NotFound,
        other => FileError::Unreadable(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Read as _, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_link_anywhere_on_the_path_is_not_followed() {
        let folder = tempfile::TempDir::new().unwrap();
        let base = folder.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("a/b/file"), "text").unwrap();
        symlink("a", base.join("link")).unwrap();
        symlink("file", base.join("a/b/link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, base.join("pipe"), Mode::RUSR).unwrap();
        let mut text = String::new();
        open_file(&base.join("a/b/file")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        for linked in ["link/b/file", "a/b/link", "a/b/none", "a/b/file/x"] {
            let error = open_file(&base.join(linked)).unwrap_err();
            assert!(matches!(error, FileError::NotFound), "{linked}: {error}");
        }
        assert!(matches!(open_file(&base.join("a")), Err(FileError::Folder)));
        assert!(matches!(open_file(&base.join("pipe")), Err(FileError::NotAFile)));
        assert!(open_file(Path::new("a/b/file")).is_err(), "not a real path");

        let mut listed = entries(&base.join("a/b")).unwrap();
        listed.retain(|(name, _)| name != "." && name != "..");
        listed.sort_by(|a, b| a.0.cmp(&b.0));
        let expected = [("file", FileType::RegularFile), ("link", FileType::Symlink)];
        assert_eq!(listed, expected.map(|(name, kind)| (name.into(), kind)));
        assert!(entries(&base.join("link/b")).is_err() && entries(&base.join("link")).is_err());
    }
}

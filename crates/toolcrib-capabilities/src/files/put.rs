//! Puts a whole new content in the place of a file, at once.

use std::{
    ffi::{OsStr, OsString},
    io, process,
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use cap_std::fs::{Dir, File, Metadata, OpenOptions, Permissions};

use super::{error::FileError, locate::LocatedEntry, read::modified};

/// Distinguishes temporary files of one process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The names that are tried for a temporary file, since an earlier process may have left some.
const ATTEMPTS: usize = 16;

/// Whether a file may be replaced or removed: a regular one that has a write permission and that this
/// user may write. The permissions of its folder alone would suffice to replace it.
///
/// # Errors
/// [`FileError::NotFound`], [`FileError::NotAFile`], [`FileError::ReadOnlyFile`].
pub(super) fn check_changeable(located: &LocatedEntry) -> Result<(), FileError> {
    let (name, found) = located.file()?;
    match found.permissions().readonly() || !may_write(&located.dir, name) {
        true => Err(FileError::ReadOnlyFile { path: located.written.clone() }),
        false => Ok(()),
    }
}

#[cfg(not(portable))]
fn may_write(dir: &Dir, name: &OsStr) -> bool {
    use rustix::{
        fs::{Access, AtFlags, accessat},
        io::Errno,
    };
    let denied = [Errno::ACCESS, Errno::PERM, Errno::ROFS];
    // Other errors are those of the change itself.
    !matches!(accessat(dir, name, Access::WRITE_OK, AtFlags::EACCESS), Err(error) if denied.contains(&error))
}

#[cfg(portable)]
fn may_write(_: &Dir, _: &OsStr) -> bool {
    true
}

/// Writes a temporary file next to the target, and gives it the target's name.
pub(super) fn put(
    located: &LocatedEntry,
    old: Option<&Metadata>,
    mut content: &[u8],
) -> Result<Option<SystemTime>, FileError> {
    put_reader(located, old, &mut content)
}

/// As [`put`], for a content that is read.
pub(super) fn put_reader(
    located: &LocatedEntry,
    old: Option<&Metadata>,
    content: &mut impl io::Read,
) -> Result<Option<SystemTime>, FileError> {
    let failed = |error| located.failed(error);
    let Some(name) = &located.name else {
        return Err(located.file().err().unwrap_or(FileError::Cancelled));
    };
    let (file, temporary) = temporary(&located.dir, old.is_some()).map_err(failed)?;
    let removed = RemoveGuard { dir: &located.dir, name: &temporary };
    keep_owner(&file, old).map_err(|_| FileError::Owner { path: located.written.clone() })?;
    let written = io::copy(content, &mut &file);
    written.and_then(|_| keep_mode(&file, old)).and_then(|()| file.sync_all()).map_err(failed)?;
    let modified = file.metadata().ok().and_then(|found| modified(&found));
    match old {
        Some(_) => located.dir.rename(&temporary, &located.dir, name).map_err(failed)?,
        None => {
            publish((&located.dir, &temporary), (&located.dir, name)).map_err(
                |error| match error.kind() {
                    io::ErrorKind::AlreadyExists => FileError::Stale {
                        path: located.written.clone(),
                        problem: "was created meanwhile; nothing was written; read it first",
                    },
                    _ => failed(error),
                },
            )?;
        }
    }
    drop(removed);
    sync_folder(&located.dir);
    Ok(modified)
}

/// Gives a file another name, which must not be taken.
#[cfg(not(portable))]
pub(super) fn publish(from: (&Dir, &OsStr), to: (&Dir, &OsStr)) -> io::Result<()> {
    use rustix::{
        fs::{RenameFlags, renameat_with},
        io::Errno,
    };
    match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // The file system or the kernel lacks it.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => publish_checked(from, to),
        renamed => Ok(renamed?),
    }
}

#[cfg(portable)]
pub(super) use publish_checked as publish;

/// The same without help of the system: another program may take the name in the moment between the
/// check and the renaming.
pub(super) fn publish_checked(from: (&Dir, &OsStr), to: (&Dir, &OsStr)) -> io::Result<()> {
    match to.0.symlink_metadata(to.1) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => from.0.rename(from.1, to.0, to.1),
        Err(error) => Err(error),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// A new file. One that replaces another is at first its owner's alone, since the other may be.
fn temporary(dir: &Dir, is_private: bool) -> io::Result<(File, OsString)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if is_private {
        make_private(&mut options);
    }
    for _ in 0..ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".toolcrib-{}-{number}.tmp", process::id()));
        match dir.open_with(&name, &options) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (file, name)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(not(portable))]
fn make_private(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt as _;
    options.mode(0o600);
}

#[cfg(portable)]
fn make_private(_: &mut OpenOptions) {}

/// The owner and the group of the old file. Only root can give a file away.
#[cfg(not(portable))]
fn keep_owner(file: &File, old: Option<&Metadata>) -> io::Result<()> {
    use cap_std::fs::MetadataExt as _;
    use rustix::fs::{Gid, Uid, fchown};
    let Some(old) = old else { return Ok(()) };
    let new = file.metadata()?;
    if (old.uid(), old.gid()) == (new.uid(), new.gid()) {
        return Ok(());
    }
    let owner = (old.uid() != new.uid()).then(|| Uid::from_raw(old.uid()));
    Ok(fchown(file, owner, Some(Gid::from_raw(old.gid())))?)
}

#[cfg(portable)]
fn keep_owner(_: &File, _: Option<&Metadata>) -> io::Result<()> {
    Ok(())
}

/// The mode of the old file, without the bits that run it as another user.
#[cfg(not(portable))]
fn keep_mode(file: &File, old: Option<&Metadata>) -> io::Result<()> {
    use cap_std::fs::PermissionsExt as _;
    let Some(old) = old else { return Ok(()) };
    file.set_permissions(Permissions::from_mode(old.permissions().mode() & 0o777))
}

#[cfg(portable)]
fn keep_mode(file: &File, old: Option<&Metadata>) -> io::Result<()> {
    let permissions: Option<Permissions> = old.map(Metadata::permissions);
    permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))
}

/// Makes the new name last through a power failure, where folders can be synchronized.
pub(super) fn sync_folder(dir: &Dir) {
    if let Ok(folder) = dir.open(".") {
        let _ = folder.sync_all();
    }
}

/// Removes a temporary file, also one that was not renamed because of an error.
struct RemoveGuard<'a> {
    dir: &'a Dir,
    name: &'a OsStr,
}

impl Drop for RemoveGuard<'_> {
    fn drop(&mut self) {
        let _ = self.dir.remove_file(self.name);
    }
}

//! Files that only their owner reads, and that are no symbolic links.

#![allow(clippy::disallowed_methods, reason = "this is where tools' databases come from")]

use std::{
    fs::{self, OpenOptions, Permissions},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

/// Options that fail on a symbolic link.
pub(crate) fn no_follow(mut options: OpenOptions) -> OpenOptions {
    // To open a pipe would wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed());
    options
}

/// Takes the rights of others from a file that an earlier version made with them. A file of another
/// owner stays as it is, and so does one on a disk without modes.
pub(crate) fn tighten(path: &Path) {
    let Ok(found) = fs::symlink_metadata(path) else { return };
    let mode = found.permissions().mode();
    if found.is_file() && mode & 0o077 != 0 {
        let _ = fs::set_permissions(path, Permissions::from_mode(mode & 0o700));
    }
}

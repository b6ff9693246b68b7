//! Removes files: moves them to the trash folder, which is bounded.

use std::{
    ffi::OsStr,
    io,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use cap_fs_ext::DirExt as _;
use cap_std::{ambient_authority, fs::Dir};
use toolcrib_core::{ToolContext, ToolError};

use super::{
    FilesHandle,
    error::FileError,
    locate::{LocatedEntry, Purpose},
    path::RelativePath,
    read::read_file,
    write::{lock, sync_folder},
};

/// The most files in a trash folder. The oldest are deleted.
const MOST_REMOVED: usize = 1_000;

/// The most bytes of a trash folder. The oldest files are deleted, but never the newest.
const MOST_REMOVED_BYTES: u64 = 256 * 1024 * 1024;

/// The characters of a name that its copy in the trash keeps.
const NAME_CHARS: usize = 100;

/// Distinguishes files that are removed at the same time.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl FilesHandle {
    /// Moves a file to the trash folder, and returns its name there. A file that changed since the
    /// conversation read it is not removed; one that was never read is.
    ///
    /// The trash contains at most 1,000 files and 256 MiB; beyond that, the oldest are deleted.
    ///
    /// # Errors
    /// A [`ToolError`] with a [`FileError`] as its cause; nothing has changed then.
    pub async fn remove(&self, cx: &ToolContext, path: &str) -> Result<String, ToolError> {
        self.check_writable().map_err(FileError::into_tool_error)?;
        let path = RelativePath::parse(path).map_err(FileError::into_tool_error)?;
        self.run(cx, move |handle, cx, _| {
            let Some(trash) = handle.trash() else {
                return Err(FileError::NoTrash { name: handle.shared_name() });
            };
            let located = handle.top().locate(&path, Purpose::Replace)?;
            let _locked = lock(&located.path);
            let located = handle.top().locate(&path, Purpose::Replace)?;
            located.file()?;
            if let Some(known) = cx.reads().and_then(|reads| reads.get(&located.path)) {
                let content = read_file(&located, handle.limits().max_file_bytes)?;
                if content.digest != known.digest {
                    let problem = "changed since it was read; it was not removed; read it again";
                    return Err(FileError::Stale { path: located.written.clone(), problem });
                }
            }
            let kept = discard(&located, trash)?;
            if let Some(reads) = cx.reads() {
                reads.forget(&located.path);
            }
            Ok(kept)
        })
        .await
    }
}

/// Moves a file into the trash folder, under a new name that begins with the time.
fn discard(located: &LocatedEntry, trash: &Path) -> Result<String, FileError> {
    let failed = |error| located.failed(error);
    let (name, _) = located.file()?;
    let trash = open_trash(trash).map_err(failed)?;
    let kept = new_name(name);
    match located.dir.rename(name, &trash, &kept) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let (mut from, _) = located.open_file()?;
            let mut to = trash.create(&kept).map_err(failed)?;
            io::copy(&mut from, &mut to).and_then(|_| to.sync_all()).map_err(failed)?;
            located.dir.remove_file(name).map_err(failed)?;
        }
        moved => moved.map_err(failed)?,
    }
    sync_folder(&trash);
    sync_folder(&located.dir);
    // The file is removed, whether or not older ones can be deleted.
    let _ = prune(&trash);
    Ok(kept)
}

/// Opens the trash folder, for its owner alone. It must not be a link: old files would be deleted in
/// another folder.
fn open_trash(path: &Path) -> io::Result<Dir> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    Dir::create_ambient_dir_all(parent, ambient_authority())?;
    let parent = Dir::open_ambient_dir(parent, ambient_authority())?;
    match parent.create_dir(name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let trash = parent.open_dir_nofollow(name)?;
    make_private(&trash)?;
    Ok(trash)
}

#[cfg(not(portable))]
fn make_private(trash: &Dir) -> io::Result<()> {
    use cap_std::fs::{Permissions, PermissionsExt as _};
    trash.set_permissions(".", Permissions::from_mode(0o700))
}

#[cfg(portable)]
fn make_private(_: &Dir) -> io::Result<()> {
    Ok(())
}

/// Whether a name is one of [`new_name`]. Other files are not ours to delete.
fn is_removed_file(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let mut parts = name.splitn(3, '-').map(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    parts.next() == Some(true) && parts.next() == Some(true) && parts.next().is_some()
}

/// Names sort by time.
fn new_name(name: &OsStr) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let number = NEXT.fetch_add(1, Ordering::Relaxed) % 1_000_000;
    let name: String = name.to_string_lossy().chars().take(NAME_CHARS).collect();
    format!("{now:015}-{number:06}-{name}")
}

/// Deletes the oldest files beyond the limits.
fn prune(trash: &Dir) -> io::Result<()> {
    let mut all = Vec::new();
    for entry in trash.entries()? {
        let entry = entry?;
        let found = entry.metadata()?;
        if found.is_file() && is_removed_file(&entry.file_name()) {
            all.push((entry.file_name(), found.len()));
        }
    }
    all.sort();
    let mut bytes = 0_u64;
    let newest_first = all.iter().rev().enumerate();
    for (at, (name, size)) in newest_first {
        bytes = bytes.saturating_add(*size);
        if at > 0 && (at >= MOST_REMOVED || bytes > MOST_REMOVED_BYTES) {
            trash.remove_file(name)?;
        }
    }
    Ok(())
}

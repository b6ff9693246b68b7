//! The trash folder of a folder: removed files, and what a change replaced. It is bounded.
//!
//! The name of a file in it begins with the time, and says what the change was, of which path, and what
//! content it left there. So the last change of a path is found without further files, also by another
//! process.

use std::{
    ffi::OsStr,
    io::{self, Read as _, Write as _},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::{
    ambient_authority,
    fs::{Dir, File, OpenOptions},
};
use toolcrib_core::Digest;

use super::{
    error::FileError,
    locate::LocatedEntry,
    put::{publish, put_reader, sync_folder},
};

/// The most removed files in a trash folder, and the most of changes. The oldest are deleted.
const MOST_FILES: usize = 1_000;

/// The most bytes of each. The oldest files are deleted, but never the newest.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// The bytes of a name that its copy in the trash keeps, so that the longer name is one of a file.
const NAME_BYTES: usize = 120;

/// The characters of a digest in a name: 128 bits.
const DIGEST_CHARS: usize = 32;

/// Distinguishes files that are kept at the same time.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// An open trash folder.
pub(super) struct Trash(Dir);

/// A change of a path, of which a trash keeps a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptKind {
    /// A content replaced the kept one.
    Replaced,
    /// The file is new; an empty one is kept.
    Created,
    /// The file was removed; it is kept.
    Removed,
    /// The file was moved to the path; its former path is kept.
    Moved,
    /// A change was reverted; the content that it had left is kept, and cannot be reverted to.
    Reverted,
}

impl KeptKind {
    const ALL: [(Self, char); 5] = [
        (Self::Replaced, 'r'),
        (Self::Created, 'c'),
        (Self::Removed, 'd'),
        (Self::Moved, 'm'),
        (Self::Reverted, 'u'),
    ];

    fn letter(self) -> char {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or('u', |(_, letter)| *letter)
    }

    /// Whether what is kept is a file that a person may want back.
    fn is_removal(self) -> bool {
        matches!(self, Self::Removed | Self::Reverted)
    }
}

/// A file in a trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeptFile {
    pub(super) name: String,
    pub(super) kind: KeptKind,
    path: String,
    after: String,
}

impl KeptFile {
    /// A new one, for a change of a path of a folder, after which the path has this content.
    fn new(kind: KeptKind, path: &Path, after: Option<&Digest>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let number = NEXT.fetch_add(1, Ordering::Relaxed) % 1_000_000;
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let end = file.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = end.take_while(|end| *end <= NAME_BYTES).last().unwrap_or_default();
        let file = file.get(..end).unwrap_or_default();
        let path = shortened(&Digest::of(path.as_os_str().as_encoded_bytes()));
        let after = after.map_or_else(|| "0".repeat(DIGEST_CHARS), shortened);
        let letter = kind.letter();
        let name = format!("{now:015}-{number:06}-{letter}{path}{after}-{file}");
        Self { name, kind, path, after }
    }

    /// `None` for other files.
    fn parse(name: &str) -> Option<Self> {
        let mut parts = name.splitn(4, '-');
        let (time, number, change) = (parts.next()?, parts.next()?, parts.next()?);
        parts.next()?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (kind, _) =
            KeptKind::ALL.into_iter().find(|(_, letter)| change.starts_with(*letter))?;
        let digests = change.get(1..).filter(|digests| digests.len() == 2 * DIGEST_CHARS)?;
        let (path, after) = digests.split_at_checked(DIGEST_CHARS)?;
        (time.len() == 15 && number.len() == 6 && is_number(time) && is_number(number)).then(|| {
            Self { name: name.to_owned(), kind, path: path.to_owned(), after: after.to_owned() }
        })
    }

    /// Whether the change left this content.
    pub(super) fn left(&self, content: &Digest) -> bool {
        self.after == shortened(content)
    }
}

fn shortened(digest: &Digest) -> String {
    digest.to_string().chars().take(DIGEST_CHARS).collect()
}

impl Trash {
    /// Opens the trash folder, for its owner alone. It must not be a link: old files would be deleted in
    /// another folder.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
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
        Ok(Self(trash))
    }

    /// Keeps a content for a change that follows.
    pub(super) fn keep(
        &self,
        kind: KeptKind,
        path: &Path,
        content: &[u8],
        after: Option<&Digest>,
    ) -> io::Result<KeptFile> {
        let kept = KeptFile::new(kind, path, after);
        let mut options = OpenOptions::new();
        let mut file = self.0.open_with(&kept.name, options.write(true).create_new(true))?;
        if let Err(error) = file.write_all(content) {
            self.delete(&kept);
            return Err(error);
        }
        self.prune();
        Ok(kept)
    }

    /// Moves a file into the trash.
    pub(super) fn take(
        &self,
        kind: KeptKind,
        path: &Path,
        located: &LocatedEntry,
    ) -> Result<KeptFile, FileError> {
        let failed = |error| located.failed(error);
        let (name, _) = located.file()?;
        let kept = KeptFile::new(kind, path, None);
        match publish((&located.dir, name), (&self.0, OsStr::new(&kept.name))) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let (mut from, _) = located.open_file()?;
                let mut to = self.0.create(&kept.name).map_err(failed)?;
                io::copy(&mut from, &mut to).and_then(|_| to.sync_all()).map_err(failed)?;
                located.dir.remove_file(name).map_err(failed)?;
            }
            moved => moved.map_err(failed)?,
        }
        sync_folder(&self.0);
        sync_folder(&located.dir);
        // The file is removed, whether or not older ones can be deleted.
        self.prune();
        Ok(kept)
    }

    /// Moves a removed file back to its path, where there must be none.
    pub(super) fn give_back(&self, kept: &KeptFile, to: &LocatedEntry) -> Result<(), FileError> {
        let exists = || FileError::Exists { path: to.written.clone() };
        let Some(name) = to.name.as_ref().filter(|_| to.found.is_none()) else {
            return Err(exists());
        };
        let moved = publish((&self.0, OsStr::new(&kept.name)), (&to.dir, name));
        match moved.map_err(|error| (error.kind(), error)) {
            Ok(()) => sync_folder(&to.dir),
            Err((io::ErrorKind::AlreadyExists, _)) => return Err(exists()),
            Err((io::ErrorKind::CrossesDevices, _)) => {
                let mut from = self.open_file(kept).map_err(|error| to.failed(error))?;
                put_reader(to, None, &mut from)?;
                self.delete(kept);
            }
            Err((_, error)) => return Err(to.failed(error)),
        }
        Ok(())
    }

    /// The record of the last change of a path that can be reverted.
    pub(super) fn last(&self, path: &Path) -> io::Result<Option<KeptFile>> {
        let path = shortened(&Digest::of(path.as_os_str().as_encoded_bytes()));
        let mut last: Option<KeptFile> = None;
        for entry in self.0.entries()? {
            let Ok(name) = entry?.file_name().into_string() else { continue };
            let kept = KeptFile::parse(&name)
                .filter(|kept| kept.path == path && kept.kind != KeptKind::Reverted);
            if let Some(kept) = kept
                && last.as_ref().is_none_or(|last| last.name < kept.name)
            {
                last = Some(kept);
            }
        }
        Ok(last)
    }

    /// A kept content.
    pub(super) fn read(&self, kept: &KeptFile, limit: u64) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.open_file(kept)?.take(limit.saturating_add(1)).read_to_end(&mut content)?;
        match content.len() as u64 > limit {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => Ok(content),
        }
    }

    fn open_file(&self, kept: &KeptFile) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        self.0.open_with(&kept.name, &options)
    }

    /// Forgets a change that was reverted, or that did not take place.
    pub(super) fn delete(&self, kept: &KeptFile) {
        let _ = self.0.remove_file(&kept.name);
    }

    /// Deletes the oldest files beyond the limits.
    fn prune(&self) {
        let _ = self.try_prune();
    }

    fn try_prune(&self) -> io::Result<()> {
        let (mut removals, mut changes) = (Vec::new(), Vec::new());
        for entry in self.0.entries()? {
            let entry = entry?;
            let found = entry.metadata()?;
            let name = entry.file_name();
            if found.is_file() && is_kept_file(&name) {
                let kept = name.to_str().and_then(KeptFile::parse);
                let is_removal = kept.is_none_or(|kept| kept.kind.is_removal());
                let list = if is_removal { &mut removals } else { &mut changes };
                list.push((name, found.len()));
            }
        }
        for mut all in [removals, changes] {
            all.sort();
            let mut bytes = 0_u64;
            for (at, (name, size)) in all.iter().rev().enumerate() {
                bytes = bytes.saturating_add(*size);
                if at > 0 && (at >= MOST_FILES || bytes > MOST_BYTES) {
                    self.0.remove_file(name)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a name is one of a trash, also of earlier versions. Other files are not ours to delete.
fn is_kept_file(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let mut parts = name.splitn(3, '-').map(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    parts.next() == Some(true) && parts.next() == Some(true) && parts.next().is_some()
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

//! An archive as a list of files, within limits that hold whatever it says of itself.

use std::{
    fs::File,
    io::{self, Cursor, Read},
    path::Path,
};

use flate2::read::GzDecoder;
use tar::EntryType;
use zip::ZipArchive;

use super::{
    InstallError,
    paths::{Taken, plain},
};

/// The largest archive, in bytes.
const MAX_ARCHIVE: u64 = 16 * 1024 * 1024;
/// The most entries, folders included.
const MAX_ENTRIES: usize = 1000;
/// The largest file, unpacked, in bytes.
const MAX_FILE: u64 = 8 * 1024 * 1024;
/// All files together, unpacked, in bytes.
const MAX_TOTAL: u64 = 32 * 1024 * 1024;
/// How many bytes one byte of the archive may become, where that is more than a mebibyte. Text
/// seldom shrinks to less than a tenth.
const MAX_RATIO: u64 = 100;
/// What is small enough at any ratio, in bytes.
const SMALL: u64 = 1024 * 1024;

/// A file in an archive.
#[derive(Debug)]
pub(super) struct Entry {
    /// Relative, with `/` between folders.
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    /// Whether it may be run. Nothing else is kept of its mode.
    pub(super) executable: bool,
}

/// What an archive is refused for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RefusedArchive(String);

impl RefusedArchive {
    /// For one of its files.
    pub(super) fn of(path: &str, problem: impl AsRef<str>) -> Self {
        let shown: String = path.chars().take(200).collect();
        Self(format!("`{}` {}", shown.escape_debug(), problem.as_ref()))
    }

    /// For what it is as a whole.
    pub(super) fn whole(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }

    fn corrupt(error: impl std::fmt::Display) -> Self {
        Self(format!("it is damaged: {error}"))
    }
}

/// Reads an archive, `.zip` or `.tar.gz`: it is told by its first bytes, not by its name.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, InstallError> {
    let unreadable = |source| InstallError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("it is not a file")));
    }
    let mut packed = Vec::new();
    file.take(MAX_ARCHIVE + 1).read_to_end(&mut packed).map_err(unreadable)?;
    Ok(unpack(&packed)?)
}

fn unpack(packed: &[u8]) -> Result<Vec<Entry>, RefusedArchive> {
    if packed.len() as u64 > MAX_ARCHIVE {
        return Err(RefusedArchive::whole("it is larger than 16 MiB"));
    }
    let mut unpacked = Unpacked::of(packed.len());
    match packed {
        [b'P', b'K', ..] => unzip(packed, &mut unpacked)?,
        [0x1f, 0x8b, ..] => untar(packed, &mut unpacked)?,
        _ => return Err(RefusedArchive::whole("it is neither a .zip nor a .tar.gz file")),
    }
    Ok(unpacked.files)
}

/// What came out so far.
struct Unpacked {
    files: Vec<Entry>,
    taken: Taken,
    entries: usize,
    total: u64,
    /// More than this may not come out.
    limit: u64,
}

impl Unpacked {
    fn of(packed: usize) -> Self {
        let by_ratio = (packed as u64).saturating_mul(MAX_RATIO).max(SMALL);
        Self {
            files: Vec::new(),
            taken: Taken::default(),
            entries: 0,
            total: 0,
            limit: by_ratio.min(MAX_TOTAL),
        }
    }

    /// Counts an entry, whatever it is.
    fn count(&mut self) -> Result<(), RefusedArchive> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(RefusedArchive::whole("there are more than 1,000 entries in it"));
        }
        Ok(())
    }

    fn folder(&mut self, raw: &[u8]) -> Result<(), RefusedArchive> {
        match plain(raw)? {
            Some(path) => self.taken.take_folder(&path),
            None => Ok(()),
        }
    }

    /// Takes a file in, of which no more is read than may be there.
    fn file(
        &mut self,
        raw: &[u8],
        executable: bool,
        content: impl Read,
    ) -> Result<(), RefusedArchive> {
        let Some(path) = plain(raw)? else {
            return Err(RefusedArchive::whole("there is a file without a name in it"));
        };
        self.taken.take_file(&path)?;
        let left = self.limit.saturating_sub(self.total);
        let allowed = left.min(MAX_FILE);
        let mut bytes = Vec::new();
        content.take(allowed + 1).read_to_end(&mut bytes).map_err(RefusedArchive::corrupt)?;
        let length = bytes.len() as u64;
        if length > MAX_FILE {
            return Err(RefusedArchive::of(&path, "is larger than 8 MiB"));
        }
        if length > left {
            let problem = "it unpacks to more than 32 MiB, or to a hundred times its size";
            return Err(RefusedArchive::whole(problem));
        }
        self.total += length;
        // What systems add on their own is left out.
        let is_noise = path.starts_with("__MACOSX/") || path.ends_with(".DS_Store");
        if !is_noise {
            self.files.push(Entry { path, bytes, executable });
        }
        Ok(())
    }
}

fn unzip(packed: &[u8], into: &mut Unpacked) -> Result<(), RefusedArchive> {
    let announced = announced_entries(packed);
    if announced.is_none_or(|entries| entries > MAX_ENTRIES) {
        return Err(RefusedArchive::whole(
            "there are more than 1,000 entries in it, or no list of them",
        ));
    }
    let mut archive = ZipArchive::new(Cursor::new(packed)).map_err(RefusedArchive::corrupt)?;
    // Of entries of one name the reader keeps one; others may keep another.
    if announced != Some(archive.len()) {
        return Err(RefusedArchive::whole("some file is in it twice"));
    }
    for index in 0..archive.len() {
        into.count()?;
        let entry = archive.by_index(index).map_err(RefusedArchive::corrupt)?;
        let name = entry.name_raw().to_vec();
        let mode = entry.unix_mode();
        // The type of a file stands in these bits of its mode; without any it is what its name says.
        match mode.unwrap_or_default() & 0o170_000 {
            0 | 0o040_000 if entry.is_dir() => into.folder(&name)?,
            0 | 0o100_000 if !entry.is_dir() => {
                into.file(&name, may_be_run(mode.unwrap_or_default()), entry)?;
            }
            _ => return Err(neither_file_nor_folder(&name)),
        }
    }
    Ok(())
}

/// How many entries a zip says that it has, at its end. Looked at before memory is taken for them.
fn announced_entries(packed: &[u8]) -> Option<usize> {
    const END: &[u8] = b"PK\x05\x06";
    let at = packed.windows(END.len()).rposition(|window| window == END)?;
    let count = packed.get(at + 10..at + 12)?;
    Some(usize::from(u16::from_le_bytes(count.try_into().ok()?)))
}

fn untar(packed: &[u8], into: &mut Unpacked) -> Result<(), RefusedArchive> {
    // The headers come on top: half a kilobyte each, and as much padding; and long names have more.
    let limit = into.limit + MAX_ENTRIES as u64 * 4096;
    let mut archive = tar::Archive::new(GzDecoder::new(packed).take(limit));
    for entry in archive.entries().map_err(RefusedArchive::corrupt)? {
        into.count()?;
        let entry = entry.map_err(RefusedArchive::corrupt)?;
        let name = entry.path_bytes().into_owned();
        match entry.header().entry_type() {
            EntryType::Directory => into.folder(&name)?,
            EntryType::Regular => {
                let mode = entry.header().mode().map_err(RefusedArchive::corrupt)?;
                into.file(&name, may_be_run(mode), entry)?;
            }
            // What holds for all entries, such as the commit of an archive that git makes.
            EntryType::XGlobalHeader => {}
            _ => return Err(neither_file_nor_folder(&name)),
        }
    }
    Ok(())
}

fn may_be_run(mode: u32) -> bool {
    mode & 0o111 != 0
}

fn neither_file_nor_folder(name: &[u8]) -> RefusedArchive {
    let name = String::from_utf8_lossy(name);
    RefusedArchive::of(&name, "is neither a file nor a folder: links and devices are refused")
}

//! Reads an archive as a list of files, within limits that do not trust its headers.

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
    paths::{UsedNames, plain},
    refused::RefusedArchiveError,
};

/// The largest archive, in bytes.
const MAX_ARCHIVE: u64 = 16 * 1024 * 1024;
/// The limit of entries, folders included.
const MAX_ENTRIES: usize = 1000;
/// The largest file, unpacked, in bytes.
const MAX_FILE: u64 = 8 * 1024 * 1024;
/// All files together, unpacked, in bytes.
const MAX_TOTAL: u64 = 32 * 1024 * 1024;
/// The limit of the compression ratio, above one mebibyte. Text seldom shrinks to less than a
/// tenth.
const MAX_RATIO: u64 = 100;
/// The size that is permitted at any ratio, in bytes.
const SMALL: u64 = 1024 * 1024;

/// A file in an archive.
#[derive(Debug)]
pub(super) struct Entry {
    /// Relative, with `/` between folders.
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    /// Whether it is executable. The rest of its mode is dropped.
    pub(super) executable: bool,
}

/// Reads an archive, `.zip` or `.tar.gz`, detected by its first bytes, not by its name.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, InstallError> {
    let unreadable = |source| InstallError::Unreadable { path: path.to_owned(), source };
    if path.to_str().is_some_and(|path| path.contains("://")) {
        return Err(unreadable(io::Error::other("download the archive, and name the file")));
    }
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        let help = "copy this folder into the project's skills folder, or pack it as a .zip or \
                    .tar.gz file";
        return Err(unreadable(io::Error::other(help)));
    }
    if !metadata.is_file() {
        return Err(unreadable(io::Error::other("it is not a file")));
    }
    let mut packed = Vec::new();
    file.take(MAX_ARCHIVE + 1).read_to_end(&mut packed).map_err(unreadable)?;
    Ok(unpack(&packed)?)
}

fn unpack(packed: &[u8]) -> Result<Vec<Entry>, RefusedArchiveError> {
    if packed.len() as u64 > MAX_ARCHIVE {
        return Err(RefusedArchiveError::whole("it is larger than 16 MiB"));
    }
    let mut unpacked = UnpackedFiles::of(packed.len());
    match packed {
        [b'P', b'K', ..] => unzip(packed, &mut unpacked)?,
        [0x1f, 0x8b, ..] => untar(packed, &mut unpacked)?,
        _ => return Err(RefusedArchiveError::whole("it is neither a .zip nor a .tar.gz file")),
    }
    Ok(unpacked.files)
}

/// The files unpacked so far.
struct UnpackedFiles {
    files: Vec<Entry>,
    taken: UsedNames,
    entries: usize,
    total: u64,
    /// The size limit of the output.
    limit: u64,
}

impl UnpackedFiles {
    fn of(packed: usize) -> Self {
        let by_ratio = (packed as u64).saturating_mul(MAX_RATIO).max(SMALL);
        Self {
            files: Vec::new(),
            taken: UsedNames::default(),
            entries: 0,
            total: 0,
            limit: by_ratio.min(MAX_TOTAL),
        }
    }

    /// Counts an entry of any type.
    fn count(&mut self) -> Result<(), RefusedArchiveError> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(RefusedArchiveError::whole("it contains more than 1,000 entries"));
        }
        Ok(())
    }

    fn folder(&mut self, raw: &[u8]) -> Result<(), RefusedArchiveError> {
        match plain(raw)? {
            Some(path) => self.taken.take_folder(&path),
            None => Ok(()),
        }
    }

    /// Adds a file, reading no more than the limit.
    fn file(
        &mut self,
        raw: &[u8],
        executable: bool,
        content: impl Read,
    ) -> Result<(), RefusedArchiveError> {
        let Some(path) = plain(raw)? else {
            return Err(RefusedArchiveError::whole("it contains a file without a name"));
        };
        self.taken.take_file(&path)?;
        let left = self.limit.saturating_sub(self.total);
        let allowed = left.min(MAX_FILE);
        let mut bytes = Vec::new();
        content.take(allowed + 1).read_to_end(&mut bytes).map_err(RefusedArchiveError::corrupt)?;
        let length = bytes.len() as u64;
        if length > MAX_FILE {
            return Err(RefusedArchiveError::of(&path, "is larger than 8 MiB"));
        }
        if length > left {
            let problem = "it unpacks to more than 32 MiB, or to a hundred times its size";
            return Err(RefusedArchiveError::whole(problem));
        }
        self.total += length;
        // Files that systems add by themselves are left out.
        let is_noise = path.starts_with("__MACOSX/") || path.ends_with(".DS_Store");
        if !is_noise {
            self.files.push(Entry { path, bytes, executable });
        }
        Ok(())
    }
}

fn unzip(packed: &[u8], into: &mut UnpackedFiles) -> Result<(), RefusedArchiveError> {
    let announced = announced_entries(packed);
    if announced.is_none_or(|entries| entries > MAX_ENTRIES) {
        return Err(RefusedArchiveError::whole(
            "it contains more than 1,000 entries, or no list of entries",
        ));
    }
    let mut archive = ZipArchive::new(Cursor::new(packed)).map_err(RefusedArchiveError::corrupt)?;
    // For duplicate names the reader keeps one entry; other readers may keep another.
    if announced != Some(archive.len()) {
        return Err(RefusedArchiveError::whole("it contains a file twice"));
    }
    for index in 0..archive.len() {
        into.count()?;
        let entry = archive.by_index(index).map_err(RefusedArchiveError::corrupt)?;
        let name = entry.name_raw().to_vec();
        let mode = entry.unix_mode();
        // These bits of the mode are the file type; without any the name decides.
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

/// The number of entries that a zip announces at its end. Checked before memory is allocated for
/// them.
fn announced_entries(packed: &[u8]) -> Option<usize> {
    const END: &[u8] = b"PK\x05\x06";
    let at = packed.windows(END.len()).rposition(|window| window == END)?;
    let count = packed.get(at + 10..at + 12)?;
    Some(usize::from(u16::from_le_bytes(count.try_into().ok()?)))
}

fn untar(packed: &[u8], into: &mut UnpackedFiles) -> Result<(), RefusedArchiveError> {
    // Plus headers: half a kilobyte each, and as much padding; long names have more.
    let limit = into.limit + MAX_ENTRIES as u64 * 4096;
    let mut archive = tar::Archive::new(GzDecoder::new(packed).take(limit));
    for entry in archive.entries().map_err(RefusedArchiveError::corrupt)? {
        into.count()?;
        let entry = entry.map_err(RefusedArchiveError::corrupt)?;
        let name = entry.path_bytes().into_owned();
        match entry.header().entry_type() {
            EntryType::Directory => into.folder(&name)?,
            EntryType::Regular => {
                let mode = entry.header().mode().map_err(RefusedArchiveError::corrupt)?;
                into.file(&name, may_be_run(mode), entry)?;
            }
            // Metadata for all entries, such as the commit of an archive that git creates.
            EntryType::XGlobalHeader => {}
            _ => return Err(neither_file_nor_folder(&name)),
        }
    }
    Ok(())
}

fn may_be_run(mode: u32) -> bool {
    mode & 0o111 != 0
}

fn neither_file_nor_folder(name: &[u8]) -> RefusedArchiveError {
    let name = String::from_utf8_lossy(name);
    RefusedArchiveError::of(&name, "is neither a file nor a folder: links and devices are refused")
}

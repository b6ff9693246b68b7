//! `[files.NAME]`: a folder that tools reach.

use std::sync::Arc;

use toolcrib_capabilities::files::FileLimits;
use toolcrib_config::{Located, Table, Value};

/// The largest permitted limit of one file, in bytes. A file is in memory, several times for an edit.
const MOST_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// The largest permitted limit of a search, in bytes.
const MOST_TOTAL_BYTES: u64 = 16 * 1024 * 1024 * 1024;

/// The largest permitted limit of a listing.
const MOST_ENTRIES: usize = 100_000;

/// The largest permitted limit of levels. Each is an open folder.
const MOST_DEPTH: usize = 64;

/// A declared folder.
#[derive(Debug)]
pub(crate) struct FilesSection {
    pub(crate) name: Located<Arc<str>>,
    pub(crate) folder: Option<Located<Arc<str>>>,
    pub(crate) write: bool,
    pub(crate) limits: FileLimits,
}

impl FilesSection {
    pub(crate) fn read_all(file: &Table<'_>) -> Vec<Self> {
        let Some(folders) = file.value("files").and_then(|value| value.entries("`[files]`")) else {
            return Vec::new();
        };
        folders.rest().filter_map(|(name, value)| Self::read(name, &value)).collect()
    }

    fn read(name: Located<Arc<str>>, value: &Value<'_>) -> Option<Self> {
        if !value.is_table() {
            let help = "write `[files.NAME]`, with a name of your choice, and below it `folder`";
            value.refuse(format!("`{}` is not a folder", name.value.escape_debug()), help);
            return None;
        }
        let what = format!("`[files.{}]`", name.value);
        value.table(&what, |table| Self {
            folder: table.required("folder", "\"notes\"").and_then(|folder| folder.text()),
            write: table.boolean("write").unwrap_or_default(),
            limits: limits(table),
            name,
        })
    }
}

fn limits(table: &Table<'_>) -> FileLimits {
    let mut limits = FileLimits::default();
    if let Some(bytes) = table.size("max_file_bytes", 1..=MOST_FILE_BYTES) {
        limits.max_file_bytes = bytes;
    }
    if let Some(entries) = table.integer("max_entries", 1..=MOST_ENTRIES) {
        limits.max_entries = entries;
    }
    if let Some(depth) = table.integer("max_depth", 1..=MOST_DEPTH) {
        limits.max_depth = depth;
    }
    if let Some(bytes) = table.size("max_total_bytes", 1..=MOST_TOTAL_BYTES) {
        limits.max_total_bytes = bytes;
    }
    limits
}

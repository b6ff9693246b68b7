//! A new project.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use toolcrib_capabilities::process::find_program;

mod from;
mod scratch;
mod servers;

pub use self::{
    from::{InitReport, init_from, init_from_url},
    scratch::{ScratchProject, ScratchTools, init_scratch},
};
use crate::{
    file::PROJECT_FILE,
    read::owner::{ForeignFile, check_owner},
    user::trust::TrustStore,
};

/// The files of the new project, by relative path.
const TEMPLATE: [(&str, &str); 4] = [
    (PROJECT_FILE, include_str!("../template/toolcrib.toml")),
    ("seed.sql", include_str!("../template/seed.sql")),
    ("script.toml", include_str!("../template/script.toml")),
    ("skills/notes/SKILL.md", include_str!("../template/skills/notes/SKILL.md")),
];

/// The schema that the first line of a new project file names: `#:schema ./toolcrib.schema.json`. It
/// is that of this program, and needs no network.
const SCHEMA_FILE: &str = "toolcrib.schema.json";

/// The servers of a client's file. Their `env` and `headers` may contain secrets, so other users of the
/// machine cannot read it.
const SERVERS_FILE: &str = ".mcp.json";

/// A project that cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// A file already exists; nothing was written.
    #[error("{} already exists; choose an empty folder", path.display())]
    AlreadyThere {
        /// The file.
        path: PathBuf,
    },
    /// The path of the folder, or a part of it, is a file; nothing was written.
    #[error("{} is a file; name a folder for the project", path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// Another user controls the folder, or the one that would contain it; nothing was written.
    #[error("{foreign}; choose a folder of your own")]
    Foreign {
        /// The owner.
        foreign: ForeignFile,
    },
    /// A project cannot begin from this file; nothing was written.
    #[error("{} {problem}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The problem, which ends a sentence about the file.
        problem: String,
    },
    /// A file or folder cannot be written. The previous ones were.
    #[error("{} cannot be written: {source}", path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Writes a small project that runs at once: notes in a database, three tools, a skill, a rule and
/// a scripted model. Creates the folder if it is missing; other files in it are kept. Returns the
/// written files.
///
/// # Errors
/// [`InitError`]. An existing file is never overwritten.
pub fn init(dir: &Path) -> Result<Vec<PathBuf>, InitError> {
    check_dir(dir)?;
    write_all(dir, &TEMPLATE.map(|(name, text)| (name.to_owned(), text.to_owned())))
}

/// Writes a project of an agent with a web browser: the MCP server of Playwright with the Chromium of
/// this machine. Its pages are files that the agent reads in parts; tools that run code or upload files
/// are denied.
///
/// # Errors
/// [`InitError`]. An existing file is never overwritten.
pub fn init_with_browser(dir: &Path) -> Result<Vec<PathBuf>, InitError> {
    check_dir(dir)?;
    let mut args = String::new();
    if let Some(browser) = BROWSERS.iter().find_map(|name| find_program(name, dir).ok()) {
        args.push_str(&format!(", \"--executable-path\", {:?}", browser.display().to_string()));
    }
    // Chromium does not start its sandbox for root.
    let is_root = rustix::process::geteuid().is_root();
    args.push_str(if is_root { ", \"--no-sandbox\"" } else { ", \"--sandbox\"" });
    let text = include_str!("../template/browser.toml").replace("@ARGS@", &args);
    // The folder must exist.
    let files =
        [(PROJECT_FILE.to_owned(), text), ("browser/README.md".to_owned(), ABOUT_PAGES.to_owned())];
    write_all(dir, &files)
}

/// A file that keeps the folder around the pages.
const ABOUT_PAGES: &str =
    "The browser writes its pages to the folder `pages` here. They may be deleted.\n";

/// The names of Chromium.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Whether a project may begin in a folder.
fn check_dir(dir: &Path) -> Result<(), InitError> {
    let is_no_folder = |path: &&Path| path.metadata().is_ok_and(|found| !found.is_dir());
    if let Some(path) = dir.ancestors().find(is_no_folder) {
        return Err(InitError::NotAFolder { path: path.to_owned() });
    }
    let trusted = TrustStore::of_user();
    check_owner(dir, |path| trusted.accepted_owner(path))
        .map_err(|foreign| InitError::Foreign { foreign })
}

/// Writes files by relative path, and the schema of the project file, if none of them exists.
fn write_all(dir: &Path, files: &[(String, String)]) -> Result<Vec<PathBuf>, InitError> {
    let files = files.iter().map(|(name, text)| (dir.join(name), text.as_str()));
    let schema = (dir.join(SCHEMA_FILE), PROJECT_FILE_SCHEMA);
    let files: Vec<_> = files.chain([schema]).collect();
    // `symlink_metadata` also finds dangling symlinks.
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        return Err(InitError::AlreadyThere { path: path.clone() });
    }
    let mut written = Vec::with_capacity(files.len());
    for (path, text) in files {
        match write_new(&path, text) {
            Ok(()) => written.push(path),
            Err(source) => return Err(InitError::Unwritable { path, source }),
        }
    }
    Ok(written)
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mode = if path.ends_with(SERVERS_FILE) { 0o600 } else { 0o666 };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode).open(path)?.write_all(text.as_bytes())
}

/// The JSON Schema of the project file, for editors. A test generates it from the reader.
pub const PROJECT_FILE_SCHEMA: &str = include_str!("../toolcrib.schema.json");

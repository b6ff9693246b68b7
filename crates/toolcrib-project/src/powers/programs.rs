//! The programs that a command starts. The bytes of the project's own are part of the trust digest;
//! the others are reported if another user controls them.

use std::{
    fs::File,
    io::Read as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use toolcrib_capabilities::process::find_program;

use crate::read::{
    owner::{FileOwner, ForeignFile},
    reads::ReadFiles,
};

/// Extensions of program files.
const EXTENSIONS: [&str; 24] = [
    "bash", "bat", "cjs", "cmd", "exe", "fish", "jar", "js", "lua", "mjs", "mts", "php", "pl",
    "ps1", "py", "pyc", "pyz", "r", "rb", "scm", "sh", "ts", "wasm", "zsh",
];

/// Prefixes of the names of programs that run a file, whatever its name.
const INTERPRETERS: [&str; 27] = [
    "ash", "awk", "bash", "bun", "busybox", "dash", "deno", "env", "fish", "gawk", "java", "ksh",
    "lua", "make", "mawk", "node", "perl", "php", "pwsh", "python", "ruby", "rscript", "sed", "sh",
    "tclsh", "uv", "zsh",
];

/// Records the program of a command and each argument that is a program file, if they are files of
/// the project. Returns those outside that another user controls. `program_dir` is the base of a
/// relative program, `working_dir` that of arguments.
pub(super) fn note_programs(
    command: &[String],
    program_dir: &Path,
    working_dir: &Path,
    project: &Path,
    reads: &ReadFiles,
) -> Vec<ForeignFile> {
    let Some((program, args)) = command.split_first() else { return Vec::new() };
    let mut files: Vec<_> = find_program(program, program_dir).ok().into_iter().collect();
    // `--flag=FILE` counts as its file.
    let values = args.iter().map(|arg| match arg.split_once('=') {
        Some((option, value)) if option.starts_with('-') => value,
        _ => arg.as_str(),
    });
    let mut is_run = interprets(program);
    for path in values.map(|value| working_dir.join(value)).filter(|path| path.is_file()) {
        // An interpreter runs its first file argument; the others are data.
        if std::mem::take(&mut is_run) || is_program(&path) {
            files.push(path);
        }
    }
    files.iter().filter_map(|file| note(file, project, reads)).collect()
}

fn interprets(program: &str) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    INTERPRETERS.iter().any(|interpreter| {
        let version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-');
        name.strip_prefix(interpreter).is_some_and(version)
    })
}

fn note(path: &Path, project: &Path, reads: &ReadFiles) -> Option<ForeignFile> {
    let real = path.canonicalize().ok()?;
    // A symlink of the project may be changed to lead elsewhere.
    let path = plain(path);
    if path != real && path.starts_with(project) {
        reads.link(&path, &real);
    }
    if real.starts_with(project) {
        reads.program(&real);
        return None;
    }
    // The owner of the folder of a symlink can change its target.
    [real.as_path(), path.parent()?, real.parent()?].into_iter().find_map(foreign)
}

/// Another user who controls a file outside the project.
fn foreign(path: &Path) -> Option<ForeignFile> {
    // In a user namespace, files of root may have another uid.
    let system = Path::new("/usr").metadata().ok().map(|usr| usr.uid());
    let owned = FileOwner::at(path).ok()?;
    let foreign = owned.foreign(&|_| None)?;
    let is_systems = system == Some(owned.uid) && matches!(foreign, ForeignFile::Owner { .. });
    (!is_systems).then_some(foreign)
}

/// A path without `.`, for comparison.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Whether a file looks like a program. Data that a program reads may change daily.
fn is_program(path: &Path) -> bool {
    let Ok(found) = path.metadata() else { return false };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let mut start = [0; 2];
    EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str())
        || found.permissions().mode() & 0o111 != 0
        || File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == *b"#!"
}

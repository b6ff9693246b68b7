//! Programs of the project itself: their bytes belong to what is trusted.

use std::{
    fs::File,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use super::Reads;

/// What files of programs are called.
const EXTENSIONS: [&str; 24] = [
    "bash", "bat", "cjs", "cmd", "exe", "fish", "jar", "js", "lua", "mjs", "mts", "php", "pl",
    "ps1", "py", "pyc", "pyz", "r", "rb", "scm", "sh", "ts", "wasm", "zsh",
];

/// Notes the program of a command and each argument that is a program's file, where they are files of
/// the project. `program_dir` is where a relative program starts, `working_dir` where arguments do.
pub(super) fn note_programs(
    command: &[String],
    program_dir: &Path,
    working_dir: &Path,
    project: &Path,
    reads: &Reads,
) {
    let Some((program, args)) = command.split_first() else { return };
    if program.contains('/') {
        note(&program_dir.join(program), project, reads);
    }
    // `--flag=FILE` counts as its file.
    let values = args.iter().map(|arg| match arg.split_once('=') {
        Some((option, value)) if option.starts_with('-') => value,
        _ => arg.as_str(),
    });
    for path in values.map(|value| working_dir.join(value)) {
        if is_program(&path) {
            note(&path, project, reads);
        }
    }
}

fn note(path: &Path, project: &Path, reads: &Reads) {
    let Ok(real) = path.canonicalize() else { return };
    if real.starts_with(project) {
        reads.program(&real);
    }
    // A link of the project may be made to lead elsewhere.
    let path = plain(path);
    if path != real && path.starts_with(project) {
        reads.link(&path, &real);
    }
}

/// A path without `.`, as it is compared.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Whether a file looks like one that something runs. Data that a program reads may change daily.
fn is_program(path: &Path) -> bool {
    let Some(found) = path.metadata().ok().filter(std::fs::Metadata::is_file) else { return false };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let mut start = [0; 2];
    EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str())
        || found.permissions().mode() & 0o111 != 0
        || File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == *b"#!"
}

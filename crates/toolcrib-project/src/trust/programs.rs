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

/// Beginnings of the names of programs that run a file, whatever that is called.
const INTERPRETERS: [&str; 27] = [
    "ash", "awk", "bash", "bun", "busybox", "dash", "deno", "env", "fish", "gawk", "java", "ksh",
    "lua", "make", "mawk", "node", "perl", "php", "pwsh", "python", "ruby", "rscript", "sed", "sh",
    "tclsh", "uv", "zsh",
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
    let mut is_run = interprets(program);
    for path in values.map(|value| working_dir.join(value)).filter(|path| path.is_file()) {
        // An interpreter runs the first file that it is given; the others are data.
        if std::mem::take(&mut is_run) || is_program(&path) {
            note(&path, project, reads);
        }
    }
}

fn interprets(program: &str) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    INTERPRETERS.iter().any(|interpreter| {
        let version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-');
        name.strip_prefix(interpreter).is_some_and(version)
    })
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
    let Ok(found) = path.metadata() else { return false };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let mut start = [0; 2];
    EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str())
        || found.permissions().mode() & 0o111 != 0
        || File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == *b"#!"
}

//! Counts the text files below folders that a model would not read as they are, as files of a project:
//! `altered LANGUAGE FOLDER...`. Prints a line for each such file with the altered part, and as the last
//! line the numbers of files, of those with tokens of chat templates, and of those with hidden characters.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program for a bench")]

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use toolcrib_core::{ChangeKind, TextOrigin};

/// The endings of the source files of each language.
const ENDINGS: [(&str, &[&str]); 3] = [
    ("rust", &["rs"]),
    ("python", &["py", "pyi"]),
    ("javascript", &["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"]),
];

/// The characters around an altered place that are printed.
const AROUND: usize = 12;

#[derive(Default)]
struct Counts {
    files: usize,
    with_tokens: usize,
    with_hidden: usize,
}

fn main() -> io::Result<()> {
    let mut args = env::args().skip(1);
    let language = args.next().unwrap_or_default();
    let endings = ENDINGS.iter().find(|(name, _)| *name == language);
    let endings = endings.map(|(_, endings)| *endings).ok_or(io::ErrorKind::InvalidInput)?;
    let mut counts = Counts::default();
    for folder in args {
        walk(Path::new(&folder), endings, &mut counts)?;
    }
    println!("{} {} {}", counts.files, counts.with_tokens, counts.with_hidden);
    Ok(())
}

fn walk(folder: &Path, endings: &[&str], counts: &mut Counts) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    entries.sort_unstable_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            walk(&path, endings, counts)?;
        } else if kind.is_file()
            && path.extension().is_some_and(|e| endings.iter().any(|w| e == *w))
        {
            count(&path, counts)?;
        }
    }
    Ok(())
}

fn count(path: &PathBuf, counts: &mut Counts) -> io::Result<()> {
    // Other encodings are not shown as text.
    let Ok(text) = String::from_utf8(fs::read(path)?) else { return Ok(()) };
    // A byte order mark is not part of the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let shown = TextOrigin::Project.shown(text);
    counts.files += 1;
    let first = |kinds: &[ChangeKind]| {
        shown.changes.iter().find(|change| kinds.contains(&change.kind)).map(|change| {
            let part = text.get(change.real.start..).unwrap_or_default();
            part.chars().take(AROUND).flat_map(char::escape_debug).collect::<String>()
        })
    };
    if let Some(token) = first(&[ChangeKind::Token]) {
        counts.with_tokens += 1;
        println!("token `{token}` {}", path.display());
    }
    if let Some(hidden) = first(&[ChangeKind::Hidden, ChangeKind::Escape]) {
        counts.with_hidden += 1;
        println!("hidden `{hidden}` {}", path.display());
    }
    Ok(())
}

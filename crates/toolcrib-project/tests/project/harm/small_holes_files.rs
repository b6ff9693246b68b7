//! A skill's files were checked under one name and opened again under it; archives brought hidden
//! files that other programs act upon.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use tempfile::TempDir;

use crate::folder::{DATABASE, Folder, SKILL, TOOL};
use crate::install::{Raw, tarred, zipped};

const READS: usize = 20_000;
const SECRET: &str = "outside the project";

/// Reads a file over and over while something is done to it, and further until it could be read: on
/// a busy machine, the other thread may pause at a moment at which it cannot. How often it was read.
fn read_during(folder: &Folder, path: &str, swap: impl Fn() + Sync) -> usize {
    let project = folder.load();
    let files = project.skills().get("billing").unwrap().files.clone().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                swap();
            }
        });
        let mut read = 0;
        for round in 0..100 * READS {
            if round >= READS && read > 0 {
                break;
            }
            if let Ok(text) = files.read(path) {
                assert_eq!(text, b"inside", "after {read} reads");
                read += 1;
            }
            // Names outside are none of its either.
            assert!(files.list().map_or(true, |names| !names.iter().any(|n| n.contains("secret"))));
        }
        is_over.store(true, Ordering::Relaxed);
        read
    })
}

fn with_file(path: &str) -> (Folder, TempDir) {
    let folder = Folder::with(&format!("{DATABASE}{TOOL}"))
        .skill("billing", SKILL)
        .file(&format!("skills/billing/{path}"), "inside");
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("note.md"), SECRET).unwrap();
    fs::write(outside.path().join("secret.md"), SECRET).unwrap();
    (folder, outside)
}

fn replace(from: &Path, by: &Path) {
    fs::rename(by, from).unwrap();
}

#[test]
fn a_skill_file_was_swapped_for_a_link_between_check_and_read() {
    let (folder, outside) = with_file("note.md");
    let skill = folder.path().join("skills/billing");
    let (note, other) = (skill.join("note.md"), skill.join(".other"));
    let read = read_during(&folder, "note.md", || {
        symlink(outside.path().join("note.md"), &other).unwrap();
        replace(&note, &other);
        fs::write(&other, "inside").unwrap();
        replace(&note, &other);
    });
    assert!(read > 0, "it can be read in between");
}

#[test]
fn a_folder_of_a_skill_was_swapped_for_a_link_between_check_and_read() {
    let (folder, outside) = with_file("notes/note.md");
    let skill = folder.path().join("skills/billing");
    let (notes, away, link) = (skill.join("notes"), skill.join(".away"), skill.join(".link"));
    let read = read_during(&folder, "notes/note.md", || {
        fs::rename(&notes, &away).unwrap();
        symlink(outside.path(), &link).unwrap();
        replace(&notes, &link);
        fs::remove_file(&notes).unwrap();
        fs::rename(&away, &notes).unwrap();
    });
    assert!(read > 0, "it can be read in between");
}

#[test]
fn the_folder_of_a_skill_itself_was_swapped_for_a_link() {
    let (folder, outside) = with_file("note.md");
    fs::write(outside.path().join("SKILL.md"), SKILL).unwrap();
    let skills = folder.path().join("skills");
    let (skill, away) = (skills.join("billing"), skills.join(".away"));
    let read = read_during(&folder, "note.md", || {
        fs::rename(&skill, &away).unwrap();
        symlink(outside.path(), &skill).unwrap();
        fs::remove_file(&skill).unwrap();
        fs::rename(&away, &skill).unwrap();
    });
    assert!(read > 0, "it can be read in between");
}

#[test]
fn a_link_that_stays_inside_is_still_read() {
    let (folder, _outside) = with_file("note.md");
    let skill = folder.path().join("skills/billing");
    symlink("note.md", skill.join("relative.md")).unwrap();
    symlink(skill.join("note.md"), skill.join("absolute.md")).unwrap();
    let project = folder.load();
    let files = project.skills().get("billing").unwrap().files.clone().unwrap();
    for path in ["relative.md", "absolute.md"] {
        assert_eq!(files.read(path).unwrap(), b"inside", "{path}");
    }
}

#[test]
fn an_archive_brought_hidden_files_that_other_programs_act_upon() {
    let hidden = [
        ".git/config",
        ".git/hooks/pre-commit",
        ".envrc",
        "sub/.git/config",
        "sub/deep/.vscode/x.json",
        ".claude/settings.json",
        "sub/.npmrc",
        "...",
        ".x",
    ];
    let mut files = vec![("billing/SKILL.md", SKILL.as_bytes()), ("billing/sub/a.md", b"a")];
    let paths: Vec<_> = hidden.iter().map(|path| format!("billing/{path}")).collect();
    files.extend(paths.iter().map(|path| (&**path, &b"act"[..])));
    let raws: Vec<_> = files.iter().map(|(path, bytes)| Raw::file(path, bytes)).collect();
    for archive in [zipped(&files), tarred(&raws)] {
        let folder = Folder::with(&format!("{DATABASE}{TOOL}"));
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("billing"), archive).unwrap();
        let installed = folder.load().install_skill(&dir.path().join("billing"), false).unwrap();
        let kept: Vec<_> = installed.files.iter().map(|(path, _)| &**path).collect();
        assert_eq!(kept, ["SKILL.md", "sub/a.md"]);
        let on_disk: Vec<_> = folder
            .listing()
            .into_iter()
            .map(|(path, _)| path.strip_prefix(folder.path()).unwrap().display().to_string())
            .filter(|path| path.contains("/.") && !path.starts_with(".toolcrib"))
            .collect();
        assert!(on_disk.is_empty(), "{on_disk:?}");
        let said = installed.warnings.to_string();
        for part in
            [".git", ".envrc", "sub/.git", "sub/deep/.vscode", ".claude", "sub/.npmrc", "...", ".x"]
        {
            let line = format!("billing/{part}:1:1: warning: this is hidden, and was left out");
            assert_eq!(said.matches(&line).count(), 1, "{part}: {said}");
        }
    }
}

#[test]
fn a_hidden_file_came_under_a_name_that_some_disks_take_for_it() {
    for name in ["\u{200b}.git/config", ".g\u{200c}it/config", "\u{feff}.envrc", "a\u{202e}dm.b"] {
        let folder = Folder::with(&format!("{DATABASE}{TOOL}"));
        let dir = TempDir::new().unwrap();
        let path = format!("billing/{name}");
        let files = [("billing/SKILL.md", SKILL.as_bytes()), (&*path, &b"act"[..])];
        fs::write(dir.path().join("billing"), zipped(&files)).unwrap();
        let refused = folder.load().install_skill(&dir.path().join("billing"), false);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("has an invisible character in its path"), "{error}");
        assert!(!folder.path().join("skills/billing").exists());
    }
}

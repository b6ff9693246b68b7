//! Attempts to leave a folder, to pass the floor, to hang, and to write over unseen changes.
//!
//! The rounds of races come from `TOOLCRIB_ATTACK_ROUNDS`; the default is small.

use std::{
    fs,
    os::unix::{
        fs::{FileTypeExt as _, symlink},
        net::UnixListener,
    },
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use toolcrib_capabilities::files::{FileError, Files, FilesSpec, Search};
use toolcrib_core::{ErrorCode, FileReads};

use crate::support::{Disk, call, cause, conversation, one, put, text};

const SECRET: &str = "the secret outside";

fn rounds() -> usize {
    let rounds = std::env::var("TOOLCRIB_ATTACK_ROUNDS");
    rounds.ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(100)
}

fn disk() -> Disk {
    let disk = Disk::new();
    put(&disk.outside().join("secret"), SECRET);
    disk.put("a/b.md", "inside");
    disk
}

/// Everything outside is as it was, and contains nothing new.
fn is_unharmed(disk: &Disk) -> bool {
    let names = fs::read_dir(disk.outside()).unwrap().count();
    names == 1 && fs::read_to_string(disk.outside().join("secret")).unwrap() == SECRET
}

#[tokio::test]
async fn paths_that_are_not_below_the_folder_are_refused() {
    let disk = disk();
    let (files, cx) = (disk.files(), conversation());
    let absolute = disk.outside().join("secret");
    let long = "x".repeat(300);
    let deep = "x/".repeat(70);
    let paths = [
        "../notes-outside/secret",
        "a/../../notes-outside/secret",
        "a/../a/b.md",
        "..",
        absolute.to_str().unwrap(),
        "/etc/hosts",
        "~/.ssh/config",
        "$HOME/x",
        "file:///etc/hosts",
        "..\\notes-outside\\secret",
        "a\0b",
        "a\nb",
        "a\u{1b}[2Jb",
        &long,
        &deep,
    ];
    for path in paths {
        let read = files.read(&cx, path).await;
        assert!(matches!(cause(&read), FileError::Path { .. }), "{path:?}: {read:?}");
        assert_eq!(read.unwrap_err().code, ErrorCode::InputInvalid);
        assert!(files.write(&cx, path, "x").await.is_err(), "{path:?}");
        assert!(files.remove(&cx, path).await.is_err(), "{path:?}");
        assert!(files.list(&cx, path, 1, false).await.is_err(), "{path:?}");
        assert!(files.search(&cx, Search::new("x").path(path)).await.is_err(), "{path:?}");
    }
    assert!(is_unharmed(&disk));
}

#[tokio::test]
async fn a_refused_path_is_shown_without_control_characters() {
    let disk = disk();
    let refused = disk.files().read(&conversation(), "a\u{1b}[2J\nb").await;
    assert_eq!(text(&refused), "`a\\u{1b}[2J\\nb` contains a control character");
}

#[tokio::test]
async fn a_pattern_that_multiplies_with_a_long_line_ends() {
    let disk = disk();
    disk.put("long", "a".repeat(4 * 1024 * 1024));
    let (files, cx) = (disk.files(), conversation());
    // Without the limits, it takes minutes.
    let found = files.search(&cx, Search::new("(a{1,10}){1,10}[ab]{20}b")).await;
    assert!(found.is_ok_and(|found| found.matches.is_empty()));
}

#[tokio::test]
async fn links_that_leave_are_not_followed_and_reveal_nothing() {
    let disk = disk();
    let notes = disk.notes();
    symlink(disk.outside().join("secret"), notes.join("absolute")).unwrap();
    symlink("../notes-outside/secret", notes.join("relative")).unwrap();
    symlink("../../notes-outside", notes.join("a/folder")).unwrap();
    symlink("absolute", notes.join("second")).unwrap();
    symlink(disk.outside().join("missing"), notes.join("dangling")).unwrap();
    symlink("circle", notes.join("circle")).unwrap();
    let (files, cx) = (disk.files(), conversation());
    for path in ["absolute", "relative", "a/folder/secret", "second", "dangling", "circle"] {
        let read = files.read(&cx, path).await;
        assert!(matches!(cause(&read), FileError::Link { .. }), "{path}: {read:?}");
        assert!(!text(&read).contains("outside"), "{read:?}");
        assert!(files.write(&cx, path, "x").await.is_err(), "{path}");
        assert!(files.remove(&cx, path).await.is_err(), "{path}");
    }
    assert!(files.write(&cx, "a/folder/new", "x").await.is_err());
    let found = files.search(&cx, Search::new("secret")).await.unwrap();
    assert!(found.matches.is_empty());
    assert!(is_unharmed(&disk));
}

#[tokio::test]
async fn links_within_the_folder_are_read_and_not_written() {
    let disk = disk();
    let notes = disk.notes();
    symlink("a/b.md", notes.join("near")).unwrap();
    symlink(notes.join("a"), notes.join("whole")).unwrap();
    symlink("../a/./b.md", notes.join("a/up")).unwrap();
    let (files, cx) = (disk.files(), conversation());
    for path in ["near", "whole/b.md", "a/up"] {
        assert_eq!(files.read_text(&cx, path).await.unwrap(), "inside", "{path}");
    }
    let written = files.write(&cx, "near", "x").await;
    assert!(matches!(cause(&written), FileError::WritesLink { .. }), "{written:?}");
    files.write(&cx, "whole/b.md", "x").await.unwrap();
    assert_eq!(disk.get("a/b.md"), "x");
    assert!(fs::symlink_metadata(notes.join("near")).unwrap().is_symlink());
}

#[tokio::test]
async fn pipes_sockets_and_devices_are_refused_at_once() {
    let disk = disk();
    let notes = disk.notes();
    let made = std::process::Command::new("mkfifo").arg(notes.join("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = UnixListener::bind(notes.join("socket")).unwrap();
    assert!(fs::metadata(notes.join("pipe")).unwrap().file_type().is_fifo());
    let (files, cx) = (disk.files(), conversation());
    for path in ["pipe", "socket"] {
        let read = files.read(&cx, path).await;
        assert!(matches!(cause(&read), FileError::NotAFile { .. }), "{path}: {read:?}");
        let written = files.write(&cx, path, "x").await;
        assert!(matches!(cause(&written), FileError::NotAFile { .. }), "{path}: {written:?}");
        assert!(files.remove(&cx, path).await.is_err());
    }
    let found = files.search(&cx, Search::new("inside")).await.unwrap();
    assert_eq!(found.matches.len(), 1);
}

#[tokio::test]
async fn a_hard_link_to_a_file_outside_is_not_written_through() {
    let disk = disk();
    fs::hard_link(disk.outside().join("secret"), disk.notes().join("twin")).unwrap();
    let (files, cx) = (disk.files(), conversation());
    files.read(&cx, "twin").await.unwrap();
    for written in [
        files.write(&cx, "twin", "x").await.map(drop),
        files.edit(&cx, "twin", one("secret", "x")).await.map(drop),
    ] {
        assert!(matches!(cause(&written), FileError::HardLink { .. }), "{written:?}");
    }
    assert!(is_unharmed(&disk));
}

#[tokio::test]
async fn the_floor_stays_closed_whatever_the_folder_is_and_however_it_is_spelled() {
    let disk = disk();
    let closed = [
        ".ssh/config",
        ".aws/credentials",
        ".kube/config",
        ".docker/config.json",
        ".netrc",
        ".npmrc",
        ".git/config",
        ".git/hooks/pre-commit",
        ".env",
        ".config/gh/hosts.yml",
        "certs/server.pem",
        "id_ed25519",
        ".toolcrib/desk.db",
    ];
    let fixed = [".bashrc", ".zshenv", "toolcrib.toml", ".vscode/tasks.json", ".mcp.json"];
    for path in closed.iter().chain(&fixed) {
        disk.put(path, SECRET);
    }
    let (files, cx) = (disk.files(), conversation());
    for path in closed {
        let read = files.read(&cx, path).await;
        assert!(matches!(cause(&read), FileError::Protected { .. }), "{path}: {read:?}");
        assert_eq!(read.unwrap_err().code, ErrorCode::Denied);
        // As a file system without case would read it.
        let upper = files.read(&cx, &path.to_uppercase()).await;
        assert!(matches!(cause(&upper), FileError::Protected { .. }), "{path}: {upper:?}");
    }
    for path in closed.iter().chain(&fixed) {
        let _ = files.read(&cx, path).await;
        for written in [
            files.write(&cx, path, "x").await.map(drop),
            files.edit(&cx, path, one("secret", "x")).await.map(drop),
            files.remove(&cx, path).await.map(drop),
        ] {
            assert!(matches!(cause(&written), FileError::Protected { .. }), "{path}: {written:?}");
        }
        assert_eq!(disk.get(path), SECRET);
    }
    // A missing one is not created, nor are its folders.
    assert!(files.write(&cx, "new/.ssh/authorized_keys", "x").await.is_err());
    assert!(!disk.notes().join("new").exists());
    // The resolved path counts.
    symlink(".ssh", disk.notes().join("keys")).unwrap();
    symlink(".netrc", disk.notes().join("readme")).unwrap();
    for path in ["keys/config", "readme"] {
        let read = files.read(&cx, path).await;
        assert!(matches!(cause(&read), FileError::Protected { .. }), "{path}: {read:?}");
    }
    let found = files.search(&cx, Search::new("secret")).await.unwrap();
    let paths: Vec<_> = found.matches.iter().map(|found| &*found.path).collect();
    assert_eq!(paths, [".bashrc", ".mcp.json", ".vscode/tasks.json", ".zshenv", "toolcrib.toml"]);
}

#[tokio::test]
async fn a_folder_inside_a_protected_one_does_not_lift_the_floor() {
    let disk = disk();
    disk.put(".docker/config.json", SECRET).put(".docker/notes", "x");
    let files = Files::open(FilesSpec::new("docker", disk.notes().join(".docker"))).unwrap();
    let cx = conversation();
    assert!(files.read_only().read(&cx, "notes").await.is_ok());
    let read = files.read_only().read(&cx, "config.json").await;
    assert!(matches!(cause(&read), FileError::Protected { .. }), "{read:?}");
}

#[tokio::test]
async fn files_of_the_host_are_protected() {
    let disk = disk();
    disk.put("policy.rules", "x").put("state/x", "x");
    let mut spec = disk.spec();
    spec.fixed = vec![disk.notes().join("policy.rules"), disk.notes().join("skills")];
    spec.closed = vec![disk.notes().join("state")];
    let files = Files::open(spec).unwrap().writable();
    let cx = conversation();
    files.read(&cx, "policy.rules").await.unwrap();
    for path in ["policy.rules", "skills/new/SKILL.md", "state/x", "state/new"] {
        let written = files.write(&cx, path, "y").await;
        assert!(matches!(cause(&written), FileError::Protected { .. }), "{path}: {written:?}");
    }
    assert!(matches!(cause(&files.read(&cx, "state/x").await), FileError::Protected { .. }));
}

/// Runs something again and again beside the attempts.
fn while_swapping(swap: impl Fn() + Send + 'static, attempts: impl FnOnce()) {
    let ended = Arc::new(AtomicBool::new(false));
    let swapping = thread::spawn({
        let ended = Arc::clone(&ended);
        move || {
            while !ended.load(Ordering::Relaxed) {
                swap();
            }
        }
    });
    attempts();
    ended.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
}

/// Exchanges two names at once, so that each always exists.
fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn a_folder_that_is_swapped_for_a_link_does_not_lead_out() {
    let disk = disk();
    put(&disk.outside().join("b.md"), SECRET);
    let notes = disk.notes();
    symlink(disk.outside(), notes.join("evil")).unwrap();
    let (files, cx) = (disk.files(), conversation());
    let swap = move || exchange(&notes.join("a"), &notes.join("evil"));
    while_swapping(swap, || {
        runtime().block_on(async {
            for round in 0..rounds() {
                match files.read_text(&cx, "a/b.md").await {
                    Ok(text) => assert_ne!(text, SECRET),
                    Err(error) => assert!(!error.message.contains("outside"), "{error:?}"),
                }
                let _ = files.write(&cx, &format!("a/new-{}", round % 5), "x").await;
                let _ = files.remove(&cx, &format!("a/new-{}", round % 5)).await;
                let found = files.search(&cx, Search::new("secret")).await.unwrap();
                assert!(found.matches.is_empty(), "{found:?}");
            }
        });
    });
    let names = fs::read_dir(disk.outside()).unwrap().count();
    assert_eq!(names, 2);
    assert_eq!(fs::read_to_string(disk.outside().join("b.md")).unwrap(), SECRET);
}

#[test]
fn a_file_that_is_swapped_for_a_link_or_a_pipe_is_neither_followed_nor_waited_for() {
    let disk = disk();
    let notes = disk.notes();
    let made = std::process::Command::new("mkfifo").arg(notes.join("pipe")).status().unwrap();
    assert!(made.success());
    let (files, cx) = (disk.files(), conversation());
    let swap = move || {
        // A write may have replaced the link or the pipe by a file.
        let _ = fs::remove_file(notes.join("a/next"));
        symlink(notes.join("../notes-outside/secret"), notes.join("a/next")).unwrap();
        fs::rename(notes.join("a/next"), notes.join("a/b.md")).unwrap();
        put(&notes.join("a/next"), "inside");
        fs::rename(notes.join("a/next"), notes.join("a/b.md")).unwrap();
        exchange(&notes.join("a/b.md"), &notes.join("pipe"));
        exchange(&notes.join("a/b.md"), &notes.join("pipe"));
    };
    while_swapping(swap, || {
        runtime().block_on(async {
            for _ in 0..rounds() {
                if let Ok(text) = files.read_text(&cx, "a/b.md").await {
                    assert_ne!(text, SECRET);
                }
                let _ = files.edit(&cx, "a/b.md", one("inside", "inside")).await;
                let _ = files.write(&cx, "a/b.md", "inside").await;
            }
        });
    });
    assert!(is_unharmed(&disk));
}

#[test]
fn of_conversations_that_write_one_file_at_once_none_writes_over_what_it_did_not_see() {
    let disk = disk();
    disk.put("count", "0");
    let files = disk.files();
    let per_thread = rounds() / 4 + 1;
    let total: usize = thread::scope(|scope| {
        let counters: Vec<_> = (0..4)
            .map(|_| {
                let files = files.clone();
                scope.spawn(move || {
                    let cx = call(&Arc::<FileReads>::default());
                    runtime().block_on(async {
                        let mut written = 0;
                        for _ in 0..per_thread {
                            let text = files.read_text(&cx, "count").await.unwrap();
                            let next = text.parse::<usize>().unwrap() + 1;
                            match files.write(&cx, "count", next.to_string()).await {
                                Ok(_) => written += 1,
                                Err(error) => assert_eq!(error.code, ErrorCode::StaleWrite),
                            }
                        }
                        written
                    })
                })
            })
            .collect();
        counters.into_iter().map(|counter| counter.join().unwrap()).sum()
    });
    assert!(total > 0);
    assert_eq!(disk.get("count"), total.to_string());
}

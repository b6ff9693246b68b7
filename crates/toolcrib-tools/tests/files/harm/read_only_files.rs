//! Files that their permissions protect.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
};

use serde_json::{Value, json};

use crate::{
    Notes,
    as_shown::{engine, one, patch, read, write},
};

#[tokio::test]
async fn a_file_without_a_write_permission_was_replaced() {
    for mode in [0o444, 0o400, 0o555] {
        let notes = Notes::new(&[("ro.txt", "one\n"), ("other", "two\n")]);
        fs::set_permissions(notes.path("ro.txt"), Permissions::from_mode(mode)).unwrap();
        let engine = engine(&notes, &[]);
        read(&engine, "ro.txt").await;
        let call = async |tool: &str, args: Value| one(&engine, tool, args).await;
        for refused in [
            patch(&engine, "ro.txt", "one", "1").await,
            write(&engine, "ro.txt", "1").await,
            call("delete_file", json!({ "path": "ro.txt" })).await,
            call("move_file", json!({ "from": "ro.txt", "to": "new" })).await,
        ] {
            assert!(refused.value.contains("`ro.txt` is read-only"), "{}", refused.value);
        }
        let moved = call("move_file", json!({ "from": "other", "to": "ro.txt" })).await;
        assert!(moved.value.contains("`ro.txt` exists"), "{}", moved.value);
        assert_eq!(notes.get("ro.txt"), "one\n");
        assert_eq!(fs::metadata(notes.path("ro.txt")).unwrap().mode() & 0o777, mode);
        assert!(!notes.path("new").exists());
    }
}

#[tokio::test]
async fn a_file_that_became_read_only_after_a_change_is_not_undone() {
    let notes = Notes::new(&[("a", "one\n")]);
    let engine = engine(&notes, &[]);
    read(&engine, "a").await;
    assert!(write(&engine, "a", "two\n").await.is_ok());
    fs::set_permissions(notes.path("a"), Permissions::from_mode(0o444)).unwrap();
    let refused = one(&engine, "undo_edit", json!({ "path": "a" })).await;
    assert!(refused.value.contains("`a` is read-only"), "{}", refused.value);
    assert_eq!(notes.get("a"), "two\n");
    fs::set_permissions(notes.path("a"), Permissions::from_mode(0o640)).unwrap();
    assert!(one(&engine, "undo_edit", json!({ "path": "a" })).await.is_ok());
    assert_eq!(fs::metadata(notes.path("a")).unwrap().mode() & 0o777, 0o640);
}

/// A user other than root, in the threads that work on files.
const OTHER: u32 = 65_534;

#[test]
fn a_change_gave_a_file_to_another_user() {
    if !rustix::process::geteuid().is_root() {
        return toolcrib_skip::skip("only root can make a file of another user");
    }
    let notes = Notes::new(&[("a", "one\n"), ("theirs", "one\n"), ("ours", "one\n")]);
    let root = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Root gives the new content to the owner.
    chown(notes.path("a"), Some(1_234), Some(4_321)).unwrap();
    root.block_on(async {
        let engine = engine(&notes, &[]);
        read(&engine, "a").await;
        assert!(patch(&engine, "a", "one", "two").await.is_ok());
    });
    let found = fs::metadata(notes.path("a")).unwrap();
    assert_eq!((notes.get("a").as_str(), found.uid(), found.gid()), ("two\n", 1_234, 4_321));
    fs::remove_dir_all(notes.dir.path().join("trash")).unwrap();
    // Another user may write into the folder, and into a file of root, but not give one to root.
    let folder = notes.path("");
    for path in [notes.dir.path(), &folder] {
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    fs::set_permissions(notes.path("theirs"), Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(notes.path("ours"), Permissions::from_mode(0o644)).unwrap();
    let other = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .on_thread_start(|| {
            let (user, group) =
                (rustix::process::Uid::from_raw(OTHER), rustix::process::Gid::from_raw(OTHER));
            rustix::thread::set_thread_gid(group).unwrap();
            rustix::thread::set_thread_uid(user).unwrap();
        })
        .build()
        .unwrap();
    other.block_on(async {
        let engine = engine(&notes, &[]);
        for (path, about) in [
            ("theirs", "`theirs` belongs to another user or group"),
            ("ours", "`ours` is read-only: its permissions forbid to change it"),
        ] {
            read(&engine, path).await;
            let refused = patch(&engine, path, "one", "two").await;
            assert!(refused.value.contains(about), "{}", refused.value);
            assert_eq!(notes.get(path), "one\n");
            assert_eq!(fs::metadata(notes.path(path)).unwrap().uid(), 0);
        }
        assert!(write(&engine, "new", "x").await.is_ok());
    });
    assert_eq!(fs::read_dir(folder).unwrap().count(), 4);
}

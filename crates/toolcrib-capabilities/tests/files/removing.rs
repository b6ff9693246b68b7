use std::fs;

use toolcrib_capabilities::files::{FileError, Files};

use crate::support::{Disk, cause, conversation, put, text};

fn trashed(disk: &Disk) -> Vec<String> {
    let Ok(entries) = fs::read_dir(disk.trash()) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_removed_file_is_in_the_trash() {
    let disk = Disk::new();
    disk.put("a/b.md", "one");
    let (files, cx) = (disk.files(), conversation());
    let kept = files.remove(&cx, "a/b.md").await.unwrap();
    assert!(kept.ends_with("-b.md"), "{kept}");
    assert_eq!(trashed(&disk), std::slice::from_ref(&kept));
    assert_eq!(fs::read_to_string(disk.trash().join(kept)).unwrap(), "one");
    assert!(disk.notes().join("a").is_dir() && !disk.notes().join("a/b.md").exists());
    assert!(matches!(cause(&files.remove(&cx, "a/b.md").await), FileError::NotFound { .. }));
    assert!(matches!(cause(&files.remove(&cx, "a").await), FileError::NotAFile { .. }));
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_removed() {
    let disk = Disk::new();
    disk.put("a.md", "one");
    let (files, cx) = (disk.files(), conversation());
    files.read(&cx, "a.md").await.unwrap();
    disk.put("a.md", "two");
    let stale = files.remove(&cx, "a.md").await;
    assert!(matches!(cause(&stale), FileError::Stale { .. }), "{stale:?}");
    assert_eq!(disk.get("a.md"), "two");
    files.read(&cx, "a.md").await.unwrap();
    files.remove(&cx, "a.md").await.unwrap();
    // It is gone as the conversation knows: a new one may be written.
    files.write(&cx, "a.md", "three").await.unwrap();
}

#[tokio::test]
async fn the_trash_keeps_the_newest_thousand_files() {
    let disk = Disk::new();
    for number in 0..1_005 {
        put(&disk.trash().join(format!("{:015}-{number:06}-x", 0)), "");
    }
    disk.put("a.md", "one");
    let kept = disk.files().remove(&conversation(), "a.md").await.unwrap();
    let trashed = trashed(&disk);
    assert_eq!(trashed.len(), 1_000);
    assert_eq!(trashed.last(), Some(&kept));
    assert_eq!(trashed[0], format!("{:015}-{:06}-x", 0, 6));
}

#[tokio::test]
async fn a_trash_folder_that_is_a_link_is_refused_and_other_files_in_it_are_kept() {
    let disk = Disk::new();
    disk.put("a.md", "one").put("b.md", "two");
    std::os::unix::fs::symlink(disk.outside(), disk.trash()).unwrap();
    let (files, cx) = (disk.files(), conversation());
    files.remove(&cx, "a.md").await.unwrap_err();
    assert_eq!(disk.get("a.md"), "one");
    assert_eq!(fs::read_dir(disk.outside()).unwrap().count(), 0);
    fs::remove_file(disk.trash()).unwrap();
    for number in 0..1_001 {
        put(&disk.trash().join(format!("photo-{number}")), "");
    }
    files.remove(&cx, "a.md").await.unwrap();
    assert_eq!(trashed(&disk).len(), 1_002);
}

#[tokio::test]
async fn without_a_trash_folder_nothing_is_removed() {
    let disk = Disk::new();
    disk.put("a.md", "one");
    let mut spec = disk.spec();
    spec.trash = None;
    let files = Files::open(spec).unwrap().writable();
    let refused = files.remove(&conversation(), "a.md").await;
    assert_eq!(
        text(&refused),
        "files of the folder `notes` cannot be removed or restored: it has no trash folder"
    );
    assert_eq!(disk.get("a.md"), "one");
}

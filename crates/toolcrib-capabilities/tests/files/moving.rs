use std::os::unix::fs::symlink;

use toolcrib_capabilities::files::{FileError, Files};

use crate::support::{Disk, cause, conversation, text};

#[tokio::test]
async fn a_moved_file_has_its_new_path_and_the_record_of_its_content() {
    let disk = Disk::new();
    disk.put("a.md", "one").put("b.md", "two");
    let (files, cx) = (disk.files(), conversation());
    files.read(&cx, "a.md").await.unwrap();
    files.rename(&cx, "a.md", "new/folder/c.md").await.unwrap();
    assert_eq!(disk.get("new/folder/c.md"), "one");
    assert!(!disk.notes().join("a.md").exists());
    files.write(&cx, "new/folder/c.md", "three").await.unwrap();
    // One that was never read can be moved, and must be read before it is written.
    files.rename(&cx, "b.md", "d.md").await.unwrap();
    assert!(matches!(cause(&files.write(&cx, "d.md", "x").await), FileError::Stale { .. }));
    assert_eq!(disk.get("d.md"), "two");
}

#[tokio::test]
async fn a_move_replaces_nothing_and_reaches_no_protected_place() {
    let disk = Disk::new();
    disk.put("a", "one").put("b", "two").put("folder/x", "").put(".bashrc", "");
    symlink("a", disk.notes().join("link")).unwrap();
    let (files, cx) = (disk.files(), conversation());
    let refused = files.rename(&cx, "a", "b").await;
    assert!(text(&refused).contains("`b` exists; choose another name"), "{refused:?}");
    assert!(text(&files.rename(&cx, "a", "a").await).contains("exists"));
    let folder = files.rename(&cx, "a", "folder").await;
    assert!(text(&folder).contains("write the new path with its file name"), "{folder:?}");
    assert!(matches!(cause(&files.rename(&cx, "folder", "x").await), FileError::NotAFile { .. }));
    assert!(matches!(cause(&files.rename(&cx, "none", "n/x").await), FileError::NotFound { .. }));
    assert!(!disk.notes().join("n").exists());
    for (from, to) in [("a", ".git/hooks/x"), ("a", ".envrc"), (".bashrc", "c"), ("a", ".env")] {
        let protected = files.rename(&cx, from, to).await;
        assert!(matches!(cause(&protected), FileError::Protected { .. }), "{from} {to}");
    }
    assert!(matches!(cause(&files.rename(&cx, "link", "c").await), FileError::WritesLink { .. }));
    assert!(matches!(cause(&files.rename(&cx, "a", "../c").await), FileError::Path { .. }));
    let handle = Files::open(disk.spec()).unwrap().read_only();
    assert!(matches!(cause(&handle.rename(&cx, "a", "c").await), FileError::ReadOnly { .. }));
    assert_eq!((disk.get("a"), disk.get("b")), ("one".to_owned(), "two".to_owned()));
}

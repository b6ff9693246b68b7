//! Changes that are reverted.

use std::fs;

use serde_json::json;
use toolcrib_core::{ErrorCode, ToolResult};
use toolcrib_engine::Engine;

use crate::{
    Notes,
    as_shown::{engine, one, patch, read, write},
    calls,
};

async fn undo(engine: &Engine, path: &str) -> ToolResult {
    one(engine, "undo_edit", json!({ "path": path })).await
}

#[tokio::test]
async fn edits_and_writes_are_undone_one_after_the_other() {
    let text = "one\r\ntwo\u{202e}\r\n";
    let notes = Notes::new(&[("b/a", text)]);
    let engine = engine(&notes, &[]);
    read(&engine, "b/a").await;
    assert!(patch(&engine, "b/a", "one", "1").await.is_ok());
    assert!(write(&engine, "b/a", "x\n").await.is_ok());
    assert!(undo(&engine, "b/a").await.is_ok());
    assert_eq!(notes.get("b/a"), "1\r\ntwo\u{202e}\r\n");
    // It is known, so it may be changed again.
    assert!(patch(&engine, "b/a", "1", "eins").await.is_ok());
    let undone = undo(&engine, "b/a").await;
    assert!(undone.value.starts_with("b/a: the last change is undone\n@@"), "{}", undone.value);
    assert!(undone.value.contains("\n-eins") && undone.value.contains("\n+1"), "{}", undone.value);
    assert!(undo(&engine, "b/a").await.is_ok());
    assert_eq!(notes.get("b/a"), text);
    let nothing = undo(&engine, "b/a").await;
    assert!(nothing.value.contains("there is no change of `b/a` to undo"), "{}", nothing.value);
    assert_eq!(undo(&engine, "absent").await.code, Some(ErrorCode::InputInvalid));
    assert_eq!(undo(&engine, "no/folder/x").await.code, Some(ErrorCode::InputInvalid));
    assert!(!notes.path("no").exists());
}

#[tokio::test]
async fn creations_removals_and_moves_are_undone() {
    let notes = Notes::new(&[("a", "one\n")]);
    let engine = engine(&notes, &[]);
    assert!(write(&engine, "new/b", "x\n").await.is_ok());
    assert_eq!(
        &*undo(&engine, "new/b").await.value,
        "removed new/b, which its last change had created"
    );
    assert!(!notes.path("new/b").exists());
    assert!(one(&engine, "delete_file", json!({ "path": "a" })).await.is_ok());
    assert_eq!(&*undo(&engine, "a").await.value, "restored a, which was deleted");
    assert_eq!(notes.get("a"), "one\n");
    let moved = json!({ "from": "a", "to": "deep/er/c" });
    assert!(one(&engine, "move_file", moved.clone()).await.is_ok());
    assert_eq!(&*undo(&engine, "deep/er/c").await.value, "moved deep/er/c back to a");
    assert_eq!(notes.get("a"), "one\n");
    // What has taken the path meanwhile is not replaced.
    assert!(one(&engine, "move_file", moved).await.is_ok());
    notes.put("a", "other\n");
    assert!(undo(&engine, "deep/er/c").await.value.contains("`a` exists"));
    assert!(one(&engine, "delete_file", json!({ "path": "a" })).await.is_ok());
    notes.put("a", "third\n");
    assert!(undo(&engine, "a").await.value.contains("`a` exists"));
    assert_eq!((notes.get("a"), notes.get("deep/er/c")), ("third\n".into(), "one\n".into()));
}

#[tokio::test]
async fn a_removed_folder_is_created_again_for_its_file() {
    let notes = Notes::new(&[("x/y/a", "one\n")]);
    let engine = engine(&notes, &[]);
    assert!(one(&engine, "delete_file", json!({ "path": "x/y/a" })).await.is_ok());
    fs::remove_dir_all(notes.path("x")).unwrap();
    assert!(undo(&engine, "x/y/a").await.is_ok());
    assert_eq!(notes.get("x/y/a"), "one\n");
}

#[tokio::test]
async fn what_others_changed_meanwhile_is_not_undone() {
    let notes = Notes::new(&[("a", "one\n"), ("b", "one\n")]);
    let engine = engine(&notes, &[]);
    for path in ["a", "b"] {
        read(&engine, path).await;
        assert!(write(&engine, path, "two\n").await.is_ok());
        notes.put(path, "theirs\n");
        let stale = undo(&engine, path).await;
        assert_eq!(stale.code, Some(ErrorCode::StaleWrite), "{}", stale.value);
        // Also after it was read.
        read(&engine, path).await;
        assert_eq!(undo(&engine, path).await.code, Some(ErrorCode::StaleWrite));
        assert_eq!(notes.get(path), "theirs\n");
    }
    fs::remove_file(notes.path("b")).unwrap();
    let gone = undo(&engine, "b").await;
    assert!(gone.value.contains("was removed or moved since its last change"), "{}", gone.value);
    assert!(!notes.path("b").exists());
}

#[tokio::test]
async fn another_conversation_may_undo_a_change_and_does_not_know_the_content_then() {
    let notes = Notes::new(&[("a", "one\n")]);
    let engine = engine(&notes, &[]);
    read(&engine, "a").await;
    assert!(write(&engine, "a", "two\n").await.is_ok());
    let undone = calls(&engine, "t", &[("undo_edit", json!({ "path": "a" }))]).await;
    assert!(undone[0].is_ok(), "{}", undone[0].value);
    assert_eq!(notes.get("a"), "one\n");
    let args = json!({ "path": "a", "content": "x" });
    let written = calls(&engine, "t", &[("write_file", args)]).await;
    assert_eq!(written[0].code, Some(ErrorCode::StaleWrite));
}

#[tokio::test]
async fn a_file_with_a_secret_is_restored_with_it_and_the_difference_hides_it() {
    let notes = Notes::new(&[("a", "key hunter22-of-all\nx\n")]);
    let engine = engine(&notes, &["hunter22-of-all"]);
    read(&engine, "a").await;
    let patched = patch(&engine, "a", "x", "y").await;
    assert!(patched.is_ok(), "{}", patched.value);
    let undone = undo(&engine, "a").await;
    assert!(undone.is_ok() && !undone.value.contains("hunter22"), "{}", undone.value);
    assert_eq!(notes.get("a"), "key hunter22-of-all\nx\n");
}

#[tokio::test]
async fn a_change_whose_former_content_cannot_be_kept_is_refused() {
    let notes = Notes::new(&[("a", "one\n")]);
    let engine = engine(&notes, &[]);
    read(&engine, "a").await;
    std::os::unix::fs::symlink(notes.path(""), notes.dir.path().join("trash")).unwrap();
    let refused = write(&engine, "a", "two\n").await;
    assert!(refused.value.contains("cannot be kept for an undo"), "{}", refused.value);
    assert!(!write(&engine, "b", "two\n").await.is_ok());
    assert_eq!(
        (notes.get("a"), fs::read_dir(notes.path("")).unwrap().count()),
        ("one\n".into(), 1)
    );
}

#[tokio::test]
async fn the_kept_contents_are_bounded_and_push_out_no_removed_file() {
    let notes = Notes::new(&[("gone", "x"), ("a", "0")]);
    let engine = engine(&notes, &[]);
    assert!(one(&engine, "delete_file", json!({ "path": "gone" })).await.is_ok());
    let trash = notes.dir.path().join("trash");
    let kept = || {
        fs::read_dir(&trash).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    let name = kept()[0].to_str().unwrap().to_owned();
    // Earlier ones, as an edit leaves them.
    let digests = name.split('-').nth(2).unwrap()[1..].to_owned();
    for number in 0..1_200 {
        fs::write(trash.join(format!("{:015}-{number:06}-r{digests}-x", 0)), "").unwrap();
    }
    read(&engine, "a").await;
    assert!(write(&engine, "a", "1").await.is_ok());
    let kept = kept();
    assert_eq!(kept.len(), 1_001);
    assert!(kept.iter().any(|one| one.to_str() == Some(&name)));
}

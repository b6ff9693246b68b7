use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    sync::Arc,
};

use toolcrib_capabilities::files::{EditProblem, FileError, FileLimits, Files, Replacement};
use toolcrib_core::{ErrorCode, FileReads, Redact, TextOrigin, ToolContextParts};

use crate::support::{Disk, call, cause, conversation, one, text};

/// The names in the folder: nothing may be left of a refused write.
fn names(disk: &Disk) -> Vec<String> {
    let entries = fs::read_dir(disk.notes()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_new_file_is_written_with_its_folders_and_can_be_written_again() {
    let disk = Disk::new();
    let (files, cx) = (disk.files(), conversation());
    let written = files.write(&cx, "a/b/c.md", "one").await.unwrap();
    assert_eq!((written.bytes, written.created), (3, true));
    let written = files.write(&cx, "a/b/c.md", "four").await.unwrap();
    assert_eq!((written.bytes, written.created), (4, false));
    assert_eq!(disk.get("a/b/c.md"), "four");
    let again = files.create(&cx, "a/b/c.md", "x").await;
    assert!(matches!(cause(&again), FileError::Exists { .. }), "{again:?}");
    assert_eq!(names(&disk), ["a"]);
}

#[tokio::test]
async fn a_file_that_was_not_read_is_not_written_over() {
    let disk = Disk::new();
    disk.put("a.md", "mine");
    let (files, cx) = (disk.files(), conversation());
    for refused in [
        files.write(&cx, "a.md", "x").await.map(drop),
        files.edit(&cx, "a.md", one("mine", "x")).await.map(drop),
        files.create(&cx, "a.md", "x").await.map(drop),
        // A call outside an engine has no record of reads.
        files.write(&ToolContextParts::detached().into(), "a.md", "x").await.map(drop),
    ] {
        assert_eq!(
            text(&refused),
            "`a.md` was not read in this conversation; nothing was written; read it first"
        );
        assert_eq!(refused.unwrap_err().code, ErrorCode::StaleWrite);
    }
    assert_eq!(disk.get("a.md"), "mine");
    files.read_text(&cx, "a.md").await.unwrap();
    files.write(&cx, "a.md", "ours").await.unwrap();
    assert_eq!(disk.get("a.md"), "ours");
}

#[tokio::test]
async fn a_change_since_the_read_is_noticed_even_with_the_same_size_and_time() {
    let disk = Disk::new();
    disk.put("a.md", "one");
    let (files, cx) = (disk.files(), conversation());
    files.read_text(&cx, "a.md").await.unwrap();
    let path = disk.notes().join("a.md");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    disk.put("a.md", "two");
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let stale = files.write(&cx, "a.md", "three").await;
    assert_eq!(
        text(&stale),
        "`a.md` changed since it was read; nothing was written; read it again"
    );
    assert_eq!(stale.unwrap_err().code.as_str(), "STALE_WRITE");
    assert!(matches!(
        cause(&files.edit(&cx, "a.md", one("two", "x")).await),
        FileError::Stale { .. }
    ));
    assert_eq!((disk.get("a.md"), names(&disk)), ("two".to_owned(), vec!["a.md".to_owned()]));
    files.read_text(&cx, "a.md").await.unwrap();
    files.write(&cx, "a.md", "three").await.unwrap();
    assert_eq!(disk.get("a.md"), "three");
}

#[tokio::test]
async fn a_file_that_was_removed_since_the_read_is_not_created_silently() {
    let disk = Disk::new();
    disk.put("a.md", "one");
    let (files, cx) = (disk.files(), conversation());
    files.read_text(&cx, "a.md").await.unwrap();
    fs::remove_file(disk.notes().join("a.md")).unwrap();
    let stale = files.write(&cx, "a.md", "x").await;
    assert!(text(&stale).contains("was removed since it was read"), "{stale:?}");
    assert!(names(&disk).is_empty());
    files.read_text(&cx, "a.md").await.unwrap_err();
    files.write(&cx, "a.md", "x").await.unwrap();
}

#[tokio::test]
async fn a_conversation_does_not_know_what_another_one_read() {
    let disk = Disk::new();
    disk.put("a.md", "one");
    let files = disk.files();
    files.read_text(&conversation(), "a.md").await.unwrap();
    let stale = files.write(&conversation(), "a.md", "x").await;
    assert!(matches!(cause(&stale), FileError::Stale { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_calls_that_edit_one_file_at_once_both_take_effect_or_one_is_refused() {
    let disk = Disk::new();
    disk.put("a.md", "one two");
    let reads = Arc::<FileReads>::default();
    let (files, cx, other) = (disk.files(), call(&reads), call(&reads));
    files.read_text(&cx, "a.md").await.unwrap();
    // The second one is compared with the result of the first, which the conversation knows.
    let (one, two) = tokio::join!(
        files.edit(&cx, "a.md", one("one", "1")),
        files.edit(&other, "a.md", one("two", "2"))
    );
    one.unwrap();
    two.unwrap();
    assert_eq!(disk.get("a.md"), "1 2");
}

#[tokio::test]
async fn the_mode_is_kept_without_bits_that_run_as_another_user() {
    let disk = Disk::new();
    disk.put("a.sh", "one").put("b", "two");
    let (files, cx) = (disk.files(), conversation());
    for (name, before, after) in [("a.sh", 0o4750, 0o750), ("b", 0o600, 0o600)] {
        let path = disk.notes().join(name);
        fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
        files.read(&cx, name).await.unwrap();
        files.write(&cx, name, "new").await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, after, "{name}");
    }
}

#[tokio::test]
async fn an_edit_is_literal_and_replaces_one_place() {
    let disk = Disk::new();
    disk.put("a.md", "price: x\n").put("b.md", "aaa").put("c.md", "ééé");
    let (files, cx) = (disk.files(), conversation());
    files.read(&cx, "a.md").await.unwrap();
    let edited = files.edit(&cx, "a.md", one("x", "$& $1 \\0 ${x}")).await.unwrap();
    assert_eq!((edited.line, disk.get("a.md")), (1, "price: $& $1 \\0 ${x}\n".to_owned()));
    // Overlapping places are two places.
    files.read(&cx, "b.md").await.unwrap();
    files.read(&cx, "c.md").await.unwrap();
    for several in [
        files.edit(&cx, "b.md", one("aa", "b")).await,
        files.edit(&cx, "c.md", one("éé", "e")).await,
    ] {
        assert!(
            matches!(
                cause(&several),
                FileError::Edit { problem: EditProblem::Several { count: 2, .. }, .. }
            ),
            "{several:?}"
        );
    }
}

#[tokio::test]
async fn an_edit_that_fails_says_where_the_nearest_lines_are() {
    let disk = Disk::new();
    disk.put("a.rs", "fn main() {\n    let total = price * count;\n    print(total);\n}\n");
    disk.put("twice", "a\nb\na\n");
    let (files, cx) = (disk.files(), conversation());
    for path in ["a.rs", "twice"] {
        files.read(&cx, path).await.unwrap();
    }
    let missed =
        files.edit(&cx, "a.rs", one("  let total = price + count;\n  print(total);", "x")).await;
    assert_eq!(
        text(&missed),
        "`a.rs`: the text to replace does not occur exactly; the nearest lines are:\n\
         2:     let total = price * count;\n3:     print(total);"
    );
    assert_eq!(missed.unwrap_err().code, ErrorCode::InputInvalid);
    let unlike = files.edit(&cx, "a.rs", one("nothing like it", "x")).await;
    assert!(text(&unlike).ends_with("read the file again"), "{unlike:?}");
    let twice = files.edit(&cx, "twice", one("a", "x")).await;
    assert!(text(&twice).contains("occurs 2 times, at the lines 1, 3"), "{twice:?}");
    assert!(text(&files.edit(&cx, "twice", one("", "x")).await).contains("is empty"));
    assert!(text(&files.edit(&cx, "twice", one("b", "b")).await).contains("are the same"));
    assert!(text(&files.edit(&cx, "new", one("b", "c")).await).contains("does not exist"));
    assert_eq!(disk.get("twice"), "a\nb\na\n");
}

#[tokio::test]
async fn a_read_only_folder_or_handle_does_not_write() {
    let disk = Disk::new();
    disk.put("a", "x");
    let mut spec = disk.spec();
    spec.write = false;
    let cx = conversation();
    for files in
        [Files::open(spec).unwrap().writable(), Files::open(disk.spec()).unwrap().read_only()]
    {
        files.read(&cx, "a").await.unwrap();
        assert!(files.is_read_only());
        for refused in [
            files.write(&cx, "a", "y").await.map(drop),
            files.create(&cx, "b", "y").await.map(drop),
            files.edit(&cx, "a", one("x", "y")).await.map(drop),
            files.remove(&cx, "a").await.map(drop),
        ] {
            assert_eq!(text(&refused), "the folder `notes` is read-only");
        }
    }
    assert_eq!((disk.get("a"), names(&disk)), ("x".to_owned(), vec!["a".to_owned()]));
}

#[tokio::test]
async fn a_content_above_the_limit_is_not_written_and_leaves_nothing() {
    let disk = Disk::new();
    disk.put("a", "xx");
    let mut limits = FileLimits::default();
    limits.max_file_bytes = 4;
    let files = Files::open(disk.spec().limits(limits)).unwrap().writable();
    let cx = conversation();
    files.read(&cx, "a").await.unwrap();
    let edited = files.edit(&cx, "a", one("xx", "12345")).await;
    assert!(matches!(cause(&edited), FileError::TooLarge { .. }));
    let new = files.write(&cx, "new/b", "12345").await;
    assert!(matches!(cause(&new), FileError::TooLarge { .. }));
    assert_eq!((disk.get("a"), names(&disk)), ("xx".to_owned(), vec!["a".to_owned()]));
}

struct Hides(&'static str);

impl Redact for Hides {
    fn redact(&self, text: &str) -> String {
        text.replace(self.0, "[redacted]")
    }

    fn redact_start(&self, start: &str) -> String {
        self.redact(start)
    }
}

#[tokio::test]
async fn a_model_cannot_replace_a_file_by_what_it_saw_of_it_redacted() {
    let disk = Disk::new();
    disk.put("a.toml", "key = 'hunter22'\nname = 'x'\n").put("b.html", "<|im_start|>\n");
    let shown = Some(TextOrigin::Project);
    disk.put("c.md", "plain");
    let cx = ToolContextParts {
        reads: Some(Arc::default()),
        redact: Some(Arc::new(Hides("hunter22"))),
        ..ToolContextParts::detached()
    }
    .into();
    let files = disk.files();
    for path in ["a.toml", "b.html", "c.md"] {
        files.read(&cx, path).await.unwrap();
    }
    let refused =
        files.write_of_model(&cx, "a.toml", "key = '[redacted]'\nname = 'y'\n".into(), shown).await;
    assert!(text(&refused).contains("contains a secret"), "{refused:?}");
    let refused = files.write_of_model(&cx, "b.html", "‹|im_start|›<b>".into(), shown).await;
    assert!(text(&refused).contains(r"how `\u{3c}|im_start|\u{3e}` is shown"), "{refused:?}");
    assert_eq!(disk.get("b.html"), "<|im_start|>\n");
    files.write_of_model(&cx, "b.html", "<b>".into(), shown).await.unwrap();
    files.write_of_model(&cx, "c.md", "new".into(), shown).await.unwrap();
    files.write_of_model(&cx, "d.md", "new".into(), shown).await.unwrap();
    files.edit(&cx, "a.toml", one("'x'", "'y'")).await.unwrap();
    assert_eq!(disk.get("a.toml"), "key = 'hunter22'\nname = 'y'\n");
}

#[tokio::test]
async fn several_edits_take_effect_together_or_not_at_all_and_return_their_difference() {
    let disk = Disk::new();
    disk.put("a", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\ntwo more\n");
    let (files, cx) = (disk.files(), conversation());
    files.read(&cx, "a").await.unwrap();
    let refused = files
        .edit(&cx, "a", [Replacement::new("one", "1"), Replacement::new("twelve", "12")])
        .await;
    let about = "`a`: edit 2 of 2: the text to replace does not occur exactly";
    assert!(text(&refused).starts_with(about), "{refused:?}");
    assert!(disk.get("a").starts_with("one\n"));
    // The second one is looked for in the result of the first one.
    let edits = [
        Replacement::new("one", "1"),
        Replacement::new("1\n", "1.\n"),
        Replacement::new("two", "2").all(),
    ];
    let edited = files.edit(&cx, "a", edits).await.unwrap();
    assert_eq!((edited.line, edited.count), (1, 4));
    assert_eq!(
        edited.diff,
        "@@ -1,5 +1,5 @@\n-one\n-two\n+1.\n+2\n three\n four\n five\n@@ -8,4 +8,4 @@\n eight\n \
         nine\n ten\n-two more\n+2 more\n"
    );
    assert_eq!(edited.bytes as usize, disk.get("a").len());
}

#[tokio::test]
async fn an_edit_that_fails_shows_white_space_and_whether_it_is_done() {
    let disk = Disk::new();
    disk.put("a", "if x {\n\treturn 1;\n}\n").put("b", "let x = 2;\n");
    let (files, cx) = (disk.files(), conversation());
    files.read(&cx, "a").await.unwrap();
    files.read(&cx, "b").await.unwrap();
    let missed = files.edit(&cx, "a", one("if x {\n    return 1;", "x")).await;
    assert_eq!(
        text(&missed),
        "`a`: the text to replace does not occur exactly; only white space differs (`·` is a \
         space, `→` a tab). The file has:\n1: if·x·{\n2: →return·1;\nThe text to replace \
         has:\nif·x·{\n····return·1;"
    );
    let done = files.edit(&cx, "b", one("let x = 1;", "let x = 2;")).await;
    let about = ", but the new text does, at line 1: it may be done already";
    assert!(text(&done).contains(about), "{done:?}");
}

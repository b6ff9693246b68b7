use std::{os::unix::fs::symlink, sync::Arc};

use toolcrib_capabilities::files::{
    FileError, FileLimits, FilePart, FileRange, Files, FilesSpec, OpenFilesError,
};
use toolcrib_core::{Digest, ErrorCode, FileReads, ToolContext, ToolContextParts};

use crate::support::{Disk, call, cause, conversation, text};

#[tokio::test]
async fn a_file_is_read_as_bytes_as_text_and_by_lines() {
    let disk = Disk::new();
    disk.put("a/b.md", "one\ntwo\nthree").put("empty", "").put("raw", [0xff, 0]);
    let (files, cx) = (disk.files(), conversation());
    assert_eq!(files.read(&cx, "raw").await.unwrap().bytes, [0xff, 0]);
    assert_eq!(files.read_text(&cx, "./a//b.md").await.unwrap(), "one\ntwo\nthree");
    let lines = files.read_lines(&cx, "a/b.md", 2, 5).await.unwrap();
    assert_eq!(
        (&*lines.text, lines.first, lines.count, lines.total),
        ("two\nthree", 2, 2, Some(3))
    );
    let lines = files.read_lines(&cx, "a/b.md", 1, 2).await.unwrap();
    assert_eq!((&*lines.text, lines.count, lines.total), ("one\ntwo\n", 2, Some(3)));
    let lines = files.read_lines(&cx, "empty", 1, 9).await.unwrap();
    assert_eq!((&*lines.text, lines.count, lines.total), ("", 0, Some(0)));

    let beyond = files.read_lines(&cx, "a/b.md", 4, 1).await;
    assert_eq!(text(&beyond), "`a/b.md` has 3 lines; there is no line 4");
    let raw = files.read_text(&cx, "raw").await;
    assert_eq!(text(&raw), "`raw` (2 bytes) is binary data, not text");
    let missing = files.read(&cx, "a/c.md").await;
    assert_eq!(text(&missing), "`a/c.md` does not exist; list the folder for its names");
    assert_eq!(missing.unwrap_err().code, ErrorCode::InputInvalid);
    assert_eq!(text(&files.read(&cx, "a").await), "`a` is a folder, not a file");
    assert_eq!(text(&files.read(&cx, "").await), "`` is a folder, not a file");
    let through_a_file = files.read(&cx, "empty/x").await;
    assert!(matches!(cause(&through_a_file), FileError::NotAFolder { .. }));
}

#[tokio::test]
async fn every_range_of_lines_is_that_of_the_text() {
    for text in ["", "\n", "a", "a\n", "a\nb\nc\nd\ne", "a\n\nb\r\n\nc\n", "é\nü\n"] {
        let disk = Disk::new();
        disk.put("t", text);
        let (files, cx) = (disk.files(), conversation());
        let all: Vec<_> = text.split_inclusive('\n').collect();
        for first in 1..=all.len() {
            for count in 0..=all.len() + 1 {
                let lines = files.read_lines(&cx, "t", first, count).await.unwrap();
                let expected: Vec<_> = all.iter().skip(first - 1).take(count).copied().collect();
                assert_eq!((lines.text, lines.count), (expected.concat(), expected.len()));
                assert_eq!((lines.first, lines.total), (first, Some(all.len())));
            }
        }
        assert!(files.read_lines(&cx, "t", all.len().max(1) + 1, 1).await.is_err());
    }
}

#[tokio::test]
async fn a_read_is_recorded_with_its_digest_size_and_turn_and_a_failed_one_is_not() {
    let disk = Disk::new();
    disk.put("a.md", "text").put("raw", [0xff]);
    let reads = Arc::<FileReads>::default();
    let (files, cx) = (disk.files(), call(&reads));
    files.read_lines(&cx, "a.md", 1, 0).await.unwrap();
    let read = reads.get(&disk.notes().join("a.md")).unwrap();
    assert_eq!((read.digest, read.size), (Digest::of("text"), 4));
    assert_eq!((&read.turn_id, read.iteration), (cx.turn_id(), 1));
    assert!(read.modified.is_some());
    files.read_text(&cx, "raw").await.unwrap_err();
    assert_eq!(reads.get(&disk.notes().join("raw")), None);
    // By the path of the file, not of the link.
    symlink("a.md", disk.notes().join("link")).unwrap();
    reads.forget(&disk.notes().join("a.md"));
    files.read(&cx, "link").await.unwrap();
    assert!(reads.get(&disk.notes().join("a.md")).is_some());
}

#[tokio::test]
async fn a_file_above_the_limit_is_not_read() {
    let disk = Disk::new();
    disk.put("a", "12345").put("b", "123456");
    let mut limits = FileLimits::default();
    limits.max_file_bytes = 5;
    let files = Files::open(disk.spec().limits(limits)).unwrap().read_only();
    let cx = conversation();
    assert_eq!(files.read_text(&cx, "a").await.unwrap(), "12345");
    let large = files.read(&cx, "b").await;
    assert_eq!(text(&large), "`b` has more than 5 bytes, the limit of this folder");
}

#[tokio::test]
async fn a_turn_whose_personality_lacks_the_folder_cannot_use_the_handle() {
    let disk = Disk::new();
    disk.put("a", "x");
    let files = disk.files();
    let only = |names: &[&str]| -> ToolContext {
        let names = names.iter().map(|name| Arc::from(*name)).collect();
        ToolContextParts { files: Some(names), ..ToolContextParts::detached() }.into()
    };
    assert!(files.read(&only(&["notes"]), "a").await.is_ok());
    let refused = files.read(&only(&["other"]), "a").await;
    assert_eq!(text(&refused), "the folder `notes` is not available here");
    assert_eq!(refused.unwrap_err().code, ErrorCode::NotAvailable);
    let refused = files.write(&only(&[]), "b", "x").await;
    assert!(matches!(cause(&refused), FileError::NotReached { .. }));
    assert!(!disk.notes().join("b").exists());
}

#[tokio::test]
async fn a_cancelled_call_does_nothing() {
    let disk = Disk::new();
    let (files, cx) = (disk.files(), conversation());
    cx.cancellation().cancel();
    let cancelled = files.write(&cx, "a", "x").await;
    assert!(matches!(cause(&cancelled), FileError::Cancelled));
    assert!(!disk.notes().join("a").exists());
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_when_it_is_opened() {
    let disk = Disk::new();
    disk.put("file", "").put(".ssh/config", "");
    let open = |path: &str| Files::open(FilesSpec::new("notes", disk.notes().join(path)));
    assert!(matches!(open("missing"), Err(OpenFilesError::Io { .. })));
    assert!(matches!(open("file"), Err(OpenFilesError::NotAFolder { .. })));
    assert!(matches!(open(".ssh"), Err(OpenFilesError::Protected { .. })));
    symlink(".ssh", disk.notes().join("innocent")).unwrap();
    assert!(matches!(open("innocent"), Err(OpenFilesError::Protected { .. })));
    let proc = Files::open(FilesSpec::new("proc", "/proc/self"));
    assert!(matches!(proc, Err(OpenFilesError::Protected { .. })));
}

#[tokio::test]
async fn text_in_other_encodings_and_images_are_read_and_other_content_is_named() {
    let disk = Disk::new();
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\
        \0\0\0\x0aIDATx\x9cc`\0\0\0\x02\0\x01H\xaf\xa4q\0\0\0\0IEND\xaeB`\x82";
    disk.put("latin", b"caf\xe9\n").put("wide", b"\xff\xfec\0a\0").put("marked", "\u{feff}one");
    disk.put("image", png).put("paper.pdf", b"%PDF-1.7 \xff").put("zero", b"a\0\xff");
    // The name says nothing about the content.
    disk.put("cut.jpg", &png[..60]).put("gif.md", b"GIF89a is a format of 1989.\n");
    let (files, cx) = (disk.files(), conversation());
    let read = async |path, encoding: Option<&str>| {
        let mut range = FileRange::default();
        range.encoding = encoding.map(str::to_owned);
        files.read_part(&cx, path, range).await
    };
    let line = async |path, encoding| match read(path, encoding).await.unwrap() {
        FilePart::Lines(lines) => lines.text,
        other => panic!("{other:?}"),
    };
    assert_eq!(line("latin", Some("windows-1252")).await, "caf\u{e9}\n");
    assert_eq!(line("wide", None).await, "ca");
    assert_eq!(line("marked", None).await, "one");
    assert_eq!(line("gif.md", None).await, "GIF89a is a format of 1989.\n");
    match read("image", None).await.unwrap() {
        FilePart::Image { info, bytes, .. } => {
            assert_eq!(info.to_string(), "image/png, 1 × 1 pixels");
            assert_eq!(bytes, png);
        }
        other => panic!("{other:?}"),
    }
    for (path, encoding, expected) in [
        ("latin", None, "`latin` (5 bytes) is not text in UTF-8; read it with its `encoding`"),
        ("paper.pdf", None, "`paper.pdf` (10 bytes) is a PDF document, not text"),
        ("zero", None, "is binary data, not text"),
        (
            "cut.jpg",
            None,
            "`cut.jpg` cannot be shown: it is a damaged PNG image: it ends too early",
        ),
        ("latin", Some("utf-16le"), "is not text in this encoding"),
        ("latin", Some("klingon"), "there is no encoding \"klingon\"; use a name such as"),
    ] {
        let refused = read(path, encoding).await;
        assert!(text(&refused).contains(expected), "{path}: {refused:?}");
    }
    // Only bytes that the model saw as they are can be replaced.
    read("latin", Some("windows-1252")).await.unwrap();
    let altered = files.write_of_model(&cx, "latin", "x".to_owned(), None).await;
    assert!(
        text(&altered).contains("is not text in UTF-8 or UTF-16, so it is not replaced"),
        "{altered:?}"
    );
}

fn range(first_line: usize, first_column: usize, lines: usize) -> FileRange {
    let mut range = FileRange::default();
    (range.first_line, range.first_column, range.lines) = (first_line, first_column, lines);
    range
}

/// Each part of a file over the limit is the same as of a smaller one, in each encoding.
#[tokio::test]
async fn a_file_over_the_limit_is_read_in_the_same_parts_as_one_below() {
    let text = "one\r\nzwei \u{fc}\u{1f600}\n\nfour and more\nlast";
    let wide = [0xfeff].into_iter().chain(text.encode_utf16());
    let wide: Vec<u8> = wide.flat_map(u16::to_le_bytes).collect();
    let disk = Disk::new();
    disk.put("plain", text).put("wide", wide).put("marked", format!("\u{feff}{text}"));
    let cx = conversation();
    let whole = disk.files();
    let mut limits = FileLimits::default();
    limits.max_file_bytes = 4;
    let parts = Files::open(disk.spec().limits(limits)).unwrap().read_only();
    for path in ["plain", "wide", "marked"] {
        for (line, column, lines) in (1..8).flat_map(|a| {
            [1, 2, 7, 8, 90].into_iter().flat_map(move |b| [(a, b, 1), (a, b, 2), (a, b, 99)])
        }) {
            let of_whole = whole.read_part(&cx, path, range(line, column, lines)).await;
            let of_part = parts.read_part(&cx, path, range(line, column, lines)).await;
            match (of_whole, of_part) {
                (Ok(FilePart::Lines(one)), Ok(FilePart::Lines(other))) => {
                    assert_eq!(
                        (&one.text, one.count, one.first_column, &one.before),
                        (&other.text, other.count, other.first_column, &other.before),
                        "{path} {line} {column} {lines}"
                    );
                    // Its end was reached, or its lines are not counted.
                    assert!(other.total == one.total || (other.total.is_none() && lines < 99));
                }
                (Err(one), Err(other)) => assert_eq!(one.message, other.message),
                other => panic!("{path} {line} {column} {lines}: {other:?}"),
            }
        }
    }
    // It was read in parts, so it is not known.
    let stale = parts.read(&cx, "plain").await;
    assert!(matches!(cause(&stale), FileError::TooLarge { .. }), "{stale:?}");
    disk.put("invalid", b"one\ntwo\n\xff\xff\xff");
    let refused = parts.read_part(&cx, "invalid", range(9, 1, 1)).await;
    assert!(matches!(cause(&refused), FileError::NotText { .. }), "{refused:?}");
}

//! What a search or a read leaves out is named.

use serde_json::json;
use toolcrib_capabilities::files::{FileLimits, Files, FilesSpec};
use toolcrib_core::ToolResult;

use crate::{
    Notes,
    as_shown::{engine, one, patch},
};

/// A folder whose files may have 1,000 bytes, and a search 10,000,000.
fn notes(files: &[(&str, &str)]) -> Notes {
    let mut notes = Notes::new(files);
    let mut limits = FileLimits::default();
    (limits.max_file_bytes, limits.max_total_bytes, limits.max_depth) = (1_000, 10_000_000, 3);
    let spec = FilesSpec::new("notes", notes.path("")).writable().limits(limits);
    notes.files = Files::open(spec.trash(notes.dir.path().join("trash"))).unwrap();
    notes
}

async fn search(notes: &Notes, args: serde_json::Value) -> ToolResult {
    one(&engine(notes, &["hunter22-of-all"]), "search_files", args).await
}

#[tokio::test]
async fn a_search_missed_large_and_binary_files_silently() {
    let large = format!("{}NEEDLE\n", "filler\n".repeat(200));
    let files = [("large.log", large.as_str()), ("a/b/c/d/deep", "NEEDLE\n"), ("small", "x\n")];
    let notes = notes(&files);
    for number in 0..8 {
        notes.put(&format!("image{number}"), "NEEDLE\n\0\n");
    }
    let found = search(&notes, json!({ "pattern": "NEEDLE" })).await;
    assert_eq!(
        &*found.value,
        "no line matches in 1 text files\n1 over the limit were not searched (search each by its \
         path): large.log\n8 binary files were not searched: image0, image1, image2, image3, image4 \
         and 3 more\n1 folders too deep were not entered (name one as the path): a/b/c\n"
    );
    let named = search(&notes, json!({ "pattern": "NEEDLE", "path": "large.log" })).await;
    assert_eq!(&*named.value, "large.log:201: NEEDLE\n");
    let deep = search(&notes, json!({ "pattern": "NEEDLE", "path": "a/b/c" })).await;
    assert_eq!(&*deep.value, "a/b/c/d/deep:1: NEEDLE\n");
}

#[tokio::test]
async fn a_search_does_not_hide_that_long_lines_are_matched_in_part() {
    let long = format!("{}NEEDLE\nNEEDLE\n", "x".repeat(70_000));
    let notes = Notes::new(&[
        ("a.js", &long),
        ("b", &format!("{} NEEDLE {}", "y".repeat(9_000), "z".repeat(900))),
    ]);
    let found = search(&notes, json!({ "pattern": "NEEDLE", "context": 1 })).await;
    let (matches, about) = found.value.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(about, "1 with very long lines: only the beginnings of these were matched: a.js");
    assert!(matches.contains("\na.js:2: NEEDLE\n"), "{matches}");
    let part = matches.lines().last().unwrap();
    assert!(part.starts_with("b:1: [a part of the line, from first_column 8902] yyy"), "{part}");
    assert!(part.contains(" NEEDLE zzz") && part.len() < 600, "{part}");
}

#[tokio::test]
async fn a_search_in_one_file_was_refused() {
    let notes =
        Notes::new(&[("sub/g.txt", "alpha\nbeta\n"), ("h", "alpha\n"), (".gitignore", "g.txt\n")]);
    let found = search(&notes, json!({ "pattern": "a$", "path": "sub/g.txt" })).await;
    assert_eq!(&*found.value, "sub/g.txt:1: alpha\nsub/g.txt:2: beta\n");
    std::os::unix::fs::symlink("g.txt", notes.path("sub/link")).unwrap();
    let linked = search(&notes, json!({ "pattern": "beta", "path": "sub/link" })).await;
    assert_eq!(&*linked.value, "sub/link:2: beta\n");
    let absent = search(&notes, json!({ "pattern": "a", "path": "none.txt" })).await;
    assert!(absent.value.contains("`none.txt` does not exist"), "{}", absent.value);
    notes.put(".env", "alpha\n");
    let protected = search(&notes, json!({ "pattern": "a", "path": ".env" })).await;
    assert!(protected.value.contains("is protected"), "{}", protected.value);
    let zero = search(&notes, json!({ "pattern": "a", "path": "h", "glob": "*.rs" })).await;
    assert_eq!(&*zero.value, "no line matches in 0 text files\n");
}

#[tokio::test]
async fn names_and_counts_are_returned_for_matching_files() {
    let notes = Notes::new(&[("a", "x\nx\ny\n"), ("b", "y\n"), ("c/d", "xx\n")]);
    let files = search(&notes, json!({ "pattern": "x", "mode": "files" })).await;
    assert_eq!(&*files.value, "a\nc/d\n");
    let counts = search(&notes, json!({ "pattern": "x", "mode": "count" })).await;
    assert_eq!(&*counts.value, "a: 2\nc/d: 1\n");
    let first = search(&notes, json!({ "pattern": "x", "mode": "count", "max_matches": 1 })).await;
    assert_eq!(&*first.value, "a: 2\nthere is more; use a narrower pattern, path or glob\n");
}

#[tokio::test]
async fn a_large_file_is_read_by_lines_and_not_written() {
    let text: String = (1..=400).map(|line| format!("line {line}\n")).collect();
    let notes = notes(&[("a.log", &text)]);
    let engine = engine(&notes, &[]);
    let part = json!({ "path": "a.log", "first_line": 300, "lines": 2 });
    let part = one(&engine, "read_file", part).await;
    let about = "a.log: lines 300 to 301 (of a file with 3492 bytes, over the limit of its folder); \
                 continue with first_line 302\nline 300\nline 301\n";
    assert_eq!(&*part.value, about);
    let end = one(&engine, "read_file", json!({ "path": "a.log", "first_line": 400 })).await;
    assert_eq!(&*end.value, "a.log: lines 400 to 400 of 400\nline 400\n");
    let beyond = one(&engine, "read_file", json!({ "path": "a.log", "first_line": 900 })).await;
    assert!(beyond.value.contains("has 400 lines; there is no line 900"), "{}", beyond.value);
    let refused = patch(&engine, "a.log", "line 300", "x").await;
    assert!(refused.value.contains("has more than 1000 bytes"), "{}", refused.value);
}

/// A long line is read in parts that together are the line, below and above the limit of a file.
#[tokio::test]
async fn the_rest_of_a_long_line_could_not_be_read() {
    let line: String = (0..30_000).map(|number| format!("{number} ")).collect();
    for notes in [
        Notes::new(&[("a", &format!("x\n{line}\nend\n"))]),
        notes(&[("a", &format!("x\n{line}\nend\n"))]),
    ] {
        let engine = engine(&notes, &[]);
        let (mut column, mut read) = (1, String::new());
        while column <= line.len() {
            let args = json!({ "path": "a", "first_line": 2, "lines": 1, "first_column": column });
            let part = one(&engine, "read_file", args).await;
            assert!(part.is_ok(), "{}", part.value);
            let (about, text) = part.value.split_once('\n').unwrap();
            assert!(!text.is_empty(), "{about}");
            read.push_str(text.trim_end_matches('\n'));
            match about.split_once("first_column ") {
                Some((_, next)) => column = next.parse().unwrap(),
                None => break,
            }
        }
        assert_eq!(read, line);
        let beyond = json!({ "path": "a", "first_line": 3, "first_column": 9 });
        let beyond = one(&engine, "read_file", beyond).await;
        assert!(beyond.value.contains("line 3 of `a` has 3 characters"), "{}", beyond.value);
    }
}

#[tokio::test]
async fn a_secret_cannot_be_read_in_two_parts() {
    let secret = "hunter22-of-all";
    let line = format!("{}{secret}{}", "a".repeat(1_000), "b".repeat(200_000));
    for notes in [Notes::new(&[("a", &line)]), notes(&[("a", &line)])] {
        let engine = engine(&notes, &[secret]);
        for column in [995, 1_002, 1_008, 1_014] {
            let args = json!({ "path": "a", "first_column": column });
            let part = one(&engine, "read_file", args).await;
            let (_, text) = part.value.split_once('\n').unwrap();
            assert!(
                text.trim_matches(['a', 'b']).starts_with("[redacted"),
                "{column}: {}",
                &text[..40]
            );
        }
        // A search whose part of the line begins or ends in it.
        for pattern in ["-of-all", "b{3}", "a{95}hunter22-of-allb{90}", ".{492}hunter22-of-all"] {
            let found = one(&engine, "search_files", json!({ "pattern": pattern })).await;
            for piece in ["unter", "nter22", "-of-a", "of-all"] {
                assert!(!found.value.contains(piece), "{pattern}: {}", &found.value[..200]);
            }
        }
    }
}

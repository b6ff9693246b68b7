use std::{fs, os::unix::fs::symlink};

use toolcrib_capabilities::files::{
    EntryKind, FileError, FileLimits, Files, LeftOutReason, Search,
};

use crate::support::{Disk, cause, conversation, text};

fn tree() -> Disk {
    let disk = Disk::new();
    disk.put("b.md", "beta\nTODO one\n").put("a/x.rs", "// TODO two\n").put("a/deep/y.rs", "y");
    disk.put("raw.bin", b"TODO\0").put(".git/config", "TODO").put(".env", "TODO");
    disk.put("latin", b"TODO \xe9");
    symlink("b.md", disk.notes().join("link")).unwrap();
    symlink("/etc", disk.notes().join("out")).unwrap();
    disk
}

#[tokio::test]
async fn a_folder_is_listed_in_order_without_protected_names() {
    let disk = tree();
    let (files, cx) = (disk.files(), conversation());
    let listing = files.list(&cx, "", 9, false).await.unwrap();
    let shown: Vec<_> =
        listing.entries.iter().map(|entry| (&*entry.path, entry.kind, entry.size)).collect();
    use EntryKind::{File, Folder, Link};
    assert_eq!(
        shown,
        [
            ("a", Folder, 0),
            ("a/deep", Folder, 0),
            ("a/deep/y.rs", File, 1),
            ("a/x.rs", File, 12),
            ("b.md", File, 14),
            ("latin", File, 6),
            ("link", Link, 0),
            ("out", Link, 0),
            ("raw.bin", File, 5),
        ]
    );
    assert!(!listing.is_cut);
    let listing = files.list(&cx, "a", 1, false).await.unwrap();
    let shown: Vec<_> = listing.entries.iter().map(|entry| &*entry.path).collect();
    assert_eq!(shown, ["a/deep", "a/x.rs"]);
    assert!(matches!(
        cause(&files.list(&cx, "b.md", 1, false).await),
        FileError::NotAFolder { .. }
    ));
    assert!(matches!(cause(&files.list(&cx, "c", 1, false).await), FileError::NotFound { .. }));
    assert!(matches!(cause(&files.list(&cx, "out", 1, false).await), FileError::Link { .. }));
}

#[tokio::test]
async fn files_are_found_by_patterns() {
    let disk = tree();
    let (files, cx) = (disk.files(), conversation());
    for (pattern, expected) in [
        ("*.rs", vec!["a/deep/y.rs", "a/x.rs"]),
        ("a/*.rs", vec!["a/x.rs"]),
        ("**/deep/*", vec!["a/deep/y.rs"]),
        ("*.{md,bin}", vec!["b.md", "raw.bin"]),
        ("config", vec![]),
    ] {
        let found = files.find(&cx, "", pattern, false).await.unwrap();
        let paths: Vec<_> = found.entries.iter().map(|entry| &*entry.path).collect();
        assert_eq!(paths, expected, "{pattern}");
    }
    assert!(matches!(cause(&files.find(&cx, "", "[", false).await), FileError::Pattern { .. }));
}

#[tokio::test]
async fn lines_are_searched_in_text_files_only() {
    let disk = tree();
    let (files, cx) = (disk.files(), conversation());
    let found = files.search(&cx, Search::new("todo \\w+").ignore_case()).await.unwrap();
    let shown: Vec<_> =
        found.matches.iter().map(|one| (&*one.path, one.line, &*one.text)).collect();
    assert_eq!(shown, [("a/x.rs", 1, "// TODO two"), ("b.md", 2, "TODO one")]);
    let other = files.search(&cx, Search::new("^TODO ").glob("latin")).await.unwrap();
    assert_eq!(other.matches[0].text, "TODO \u{fffd}");
    assert!(!found.is_cut);
    let found = files.search(&cx, Search::new("TODO").glob("*.md").max_matches(9)).await.unwrap();
    assert_eq!((found.matches.len(), found.files), (1, 1));
    let found = files.search(&cx, Search::new("TODO").path("a")).await.unwrap();
    assert_eq!(found.matches.len(), 1);
    let found = files.search(&cx, Search::new("TODO").max_matches(1)).await.unwrap();
    assert_eq!((found.matches.len(), found.is_cut), (1, true));
    let invalid = files.search(&cx, Search::new("(")).await;
    assert_eq!(text(&invalid), "the pattern is not valid: unclosed group");
    let large = files.search(&cx, Search::new("\\w{1000}{1000}")).await;
    assert!(matches!(cause(&large), FileError::Pattern { .. }));
}

#[tokio::test]
async fn a_search_does_not_make_a_file_known() {
    let disk = tree();
    let (files, cx) = (disk.files(), conversation());
    files.search(&cx, Search::new("beta")).await.unwrap();
    let stale = files.write(&cx, "b.md", "x").await;
    assert!(matches!(cause(&stale), FileError::Stale { .. }));
}

#[tokio::test]
async fn the_limits_of_names_levels_and_bytes_cut_with_a_notice() {
    let disk = Disk::new();
    for number in 0..20 {
        disk.put(&format!("f{number:02}"), "12345");
    }
    disk.put("x/y/z/deep", "12345");
    let mut limits = FileLimits::default();
    (limits.max_entries, limits.max_depth, limits.max_total_bytes) = (5, 2, 12);
    let files = Files::open(disk.spec().limits(limits)).unwrap().read_only();
    let cx = conversation();
    let listing = files.list(&cx, "", 64, false).await.unwrap();
    assert_eq!((listing.entries.len(), listing.is_cut), (5, true));
    let found = files.find(&cx, "", "deep", false).await.unwrap();
    assert!(found.entries.is_empty());
    let found = files.search(&cx, Search::new("5")).await.unwrap();
    assert_eq!((found.matches.len(), found.is_cut), (2, true));
}

#[tokio::test]
async fn a_folder_that_may_not_be_read_does_not_end_a_listing() {
    use std::os::unix::fs::PermissionsExt as _;
    let disk = Disk::new();
    disk.put("a/x", "").put("b", "");
    fs::set_permissions(disk.notes().join("a"), fs::Permissions::from_mode(0o000)).unwrap();
    let listing = disk.files().list(&conversation(), "", 9, false).await.unwrap();
    fs::set_permissions(disk.notes().join("a"), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(listing.entries.iter().any(|entry| entry.path == "b"));
}

/// The end of a line was not found before CR LF.
#[tokio::test]
async fn a_pattern_of_the_end_of_a_line_matches_before_each_line_end() {
    let disk = Disk::new();
    disk.put("crlf", "let x;\r\nlet y; \r\n\r\n").put("lf", "let x;\nlet y; \n\n");
    let (files, cx) = (disk.files(), conversation());
    for (pattern, lines) in [
        ("x;$", [1, 1]),
        ("^$", [3, 3]),
        (r"\Alet x", [1, 1]),
        ("^let y; $", [2, 2]),
        (r"x;\s*$", [1, 1]),
        ("[^x];", [2, 2]),
    ] {
        let found = files.search(&cx, Search::new(pattern)).await.unwrap();
        let shown: Vec<_> = found.matches.iter().map(|one| one.line).collect();
        assert_eq!(shown, lines, "{pattern}");
    }
    let found = files.search(&cx, Search::new("x;")).await.unwrap();
    assert!(found.matches.iter().all(|one| one.text == "let x;"), "{found:?}");
}

/// Files with names such as `$id.tsx` were neither listed nor searched, without a word.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn names_with_a_dollar_or_a_tilde_are_listed_and_unusable_names_are_counted() {
    use std::os::unix::ffi::OsStrExt as _;
    let disk = Disk::new();
    for name in ["$id.tsx", "routes/$lang/$id.tsx", "~$letter.docx", "a\tb", "c\\d", "$HOME"] {
        disk.put(name, "x");
    }
    fs::write(disk.notes().join(std::ffi::OsStr::from_bytes(b"\xff")), "x").unwrap();
    let (files, cx) = (disk.files(), conversation());
    let listing = files.list(&cx, "", 9, false).await.unwrap();
    let paths: Vec<_> = listing.entries.iter().map(|entry| &*entry.path).collect();
    let usable = ["$id.tsx", "routes", "routes/$lang", "routes/$lang/$id.tsx", "~$letter.docx"];
    assert_eq!(paths, usable);
    let unusable = ["$HOME", "a\\tb", "c\\\\d", "\u{fffd}"];
    let found = files.search(&cx, Search::new("x")).await.unwrap();
    assert_eq!(found.matches.len(), 3);
    for left_out in [listing.left_out, found.left_out] {
        assert_eq!(
            (left_out[0].reason, &*left_out[0].paths),
            (LeftOutReason::Name, &unusable.map(str::to_owned)[..])
        );
    }
    for path in ["$id.tsx", "routes/$lang/$id.tsx"] {
        assert_eq!(files.read_text(&cx, path).await.unwrap(), "x");
    }
    for path in ["~", "~/x", "~ann/x", "$HOME/x", "${HOME}/x", "$HOME"] {
        let refused = files.read(&cx, path).await.unwrap_err();
        assert!(refused.message.contains("is not a plain path"), "{path}: {refused:?}");
    }
}

#[tokio::test]
async fn ignored_files_are_left_out_unless_they_are_wanted() {
    let disk = Disk::new();
    disk.put(".gitignore", "target/\n*.log\n!keep.log\n").put("target/out", "x").put("a.log", "x");
    disk.put("keep.log", "x")
        .put("sub/.ignore", "/gen\n")
        .put("sub/gen", "x")
        .put("sub/b.log", "x");
    disk.put("sub/deep/gen", "x").put("sub/deep/target/y", "x");
    let (files, cx) = (disk.files(), conversation());
    let paths = async |path, ignored| -> Vec<String> {
        let listing = files.list(&cx, path, 9, ignored).await.unwrap();
        listing.entries.into_iter().map(|entry| entry.path).collect()
    };
    let kept = [".gitignore", "keep.log", "sub", "sub/.ignore", "sub/deep", "sub/deep/gen"];
    assert_eq!(paths("", false).await, kept);
    // The patterns of the folders above count too.
    assert_eq!(paths("sub", false).await, ["sub/.ignore", "sub/deep", "sub/deep/gen"]);
    assert_eq!(paths("", true).await.len(), 13);
    let found = files.search(&cx, Search::new("x")).await.unwrap();
    let shown: Vec<_> = found.matches.iter().map(|one| &*one.path).collect();
    assert_eq!(shown, ["keep.log", "sub/deep/gen"]);
    assert_eq!(files.search(&cx, Search::new("x").ignored()).await.unwrap().matches.len(), 7);
    assert_eq!(files.find(&cx, "", "*.log", false).await.unwrap().entries.len(), 1);
}

#[tokio::test]
async fn a_search_returns_the_lines_around_a_match_and_reads_other_encodings() {
    let disk = Disk::new();
    disk.put("a", "1\n2\n3 x\n4\n5\n")
        .put("wide", "\u{feff}x\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    let (files, cx) = (disk.files(), conversation());
    let found = files.search(&cx, Search::new("x").context(1)).await.unwrap();
    let shown: Vec<_> =
        found.matches.iter().map(|one| (one.line, &*one.text, one.is_context)).collect();
    let expected = [(2, "2", true), (3, "3 x", false), (4, "4", true), (1, "x", false)];
    assert_eq!(shown, expected);
}

/// The first matches are those of the first paths, however the threads finish.
#[tokio::test]
async fn a_search_that_is_cut_returns_the_first_matches() {
    let disk = Disk::new();
    for number in 0..200 {
        // The earlier a file, the longer its search.
        let text = "filler\n".repeat(200 - number) + "x\nx\n";
        disk.put(&format!("f{number:03}"), text);
    }
    let (files, cx) = (disk.files(), conversation());
    let found = files.search(&cx, Search::new("^x$").max_matches(5)).await.unwrap();
    let shown: Vec<_> = found.matches.iter().map(|one| &*one.path).collect();
    assert_eq!(shown, ["f000", "f000", "f001", "f001", "f002"]);
    assert!(found.is_cut);
    let whole = files.search(&cx, Search::new("^x$").max_matches(400)).await.unwrap();
    assert_eq!((whole.matches.len(), whole.is_cut), (400, false));
}

//! Unusual contents.

use serde_json::{Value, json};
use toolcrib_artifacts::{ArtifactSource, Artifacts, FileStore, TurnArtifacts};

use crate::support::{ask, cursor, keep, keep_as, query, turn, turn_of};

fn read(turn: &TurnArtifacts, args: Value) -> String {
    let mut args = args;
    args["id"] = json!("call");
    ask(turn, "artifact_read", args).unwrap()
}

fn search(turn: &TurnArtifacts, pattern: &str) -> String {
    ask(turn, "artifact_search", json!({ "id": "call", "pattern": pattern })).unwrap()
}

#[test]
fn binary_content_is_shown_in_hexadecimal() {
    let turn = turn();
    keep(&turn, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\xff");
    insta::assert_snapshot!(read(&turn, json!({})), @r"
    00000000  89 50 4e 47 0d 0a 1a 0a 00 00 00 0d 49 48 44 52  |.PNG........IHDR|
    00000010  00 ff  |..|
    ");
    assert_eq!(search(&turn, "IHDR"), "3:\0\0\0\rIHDR\0\u{fffd}");
    assert!(search(&turn, "(?-u:\\xff)").starts_with("3:"));
}

#[test]
fn invalid_utf_8_is_shown_as_far_as_it_is_text() {
    let turn = turn();
    keep(&turn, b"caf\xe9 \xff\xfe ok\n\xc3");
    assert_eq!(read(&turn, json!({})), "caf\u{fffd} \u{fffd}\u{fffd} ok\n\u{fffd}");
    assert_eq!(search(&turn, "ok"), "1:caf\u{fffd} \u{fffd}\u{fffd} ok");
}

#[test]
fn a_range_may_begin_within_a_character() {
    let turn = turn();
    keep(&turn, "aéb");
    assert_eq!(read(&turn, json!({ "bytes": { "from": 2 } })), "\u{fffd}b");
}

#[test]
fn an_empty_content_can_be_kept_and_queried() {
    let turn = turn();
    keep(&turn, "");
    assert!(read(&turn, json!({})).starts_with("(nothing)\n[the range is empty"));
    assert!(read(&turn, json!({ "tail": 5 })).starts_with("(nothing)"));
    assert_eq!(search(&turn, ""), "(no line matches)");
    assert_eq!(query(&turn, "line_count", json!({})).unwrap(), "0");
    assert_eq!(query(&turn, "head", json!({})).unwrap(), "(no lines)");
}

#[test]
fn carriage_returns_stay_and_are_not_shown_by_a_search() {
    let turn = turn();
    keep(&turn, "one\r\ntwo\rstill two\r\n\r\n");
    assert_eq!(read(&turn, json!({ "lines": { "from": 2, "to": 2 } })), "two\rstill two\r");
    assert_eq!(search(&turn, "^one\r$"), "1:one");
    assert_eq!(search(&turn, "^$"), "3:\n4:", "what a search does not show is not there");
}

/// One line of five megabytes: it is processed in windows and not as a whole.
#[test]
fn one_very_long_line_is_read_and_searched() {
    let folder = tempfile::tempdir().unwrap();
    let turn = turn_of(&Artifacts::new(FileStore::new(folder.path())), "c1");
    let mut line = "0123456789".repeat(500_000);
    line.replace_range(3_000_000..3_000_006, "needle");
    line.replace_range(4_999_994.., "ending");
    keep(&turn, format!("first\n{line}\nlast needle"));
    let found = search(&turn, "needle");
    assert_eq!(found.lines().map(|line| &line[..2]).collect::<Vec<_>>(), ["2:", "3:"], "{found}");
    assert!(found.contains("needle6789012"));
    // The ends of a window are not the ends of the line.
    assert!(search(&turn, "ending$").starts_with("2:…"));
    assert!(search(&turn, "^0123").starts_with("2:0123"));
    // Each line is found once, and none in between.
    assert_eq!(
        search(&turn, ".").lines().map(|line| &line[..2]).collect::<Vec<_>>(),
        ["1:", "2:", "3:"]
    );
    for nowhere in ["^$", "^9", "^needle6", "6$", "9$", "\\b5", "\\bneedle6"] {
        assert_eq!(search(&turn, nowhere), "(no line matches)", "{nowhere}");
    }
    assert!(search(&turn, "needle.*ending").starts_with("(no"), "longer than what is looked at");
    assert!(search(&turn, "needle.{1000}").starts_with("2:"));
    assert_eq!(query(&turn, "line_count", json!({})).unwrap(), "3");
    let middle = read(&turn, json!({ "bytes": { "from": 3_000_006, "to": 3_000_012 } }));
    assert_eq!(middle, "needle");
    let head = read(&turn, json!({ "lines": { "from": 2, "to": 2 } }));
    assert!(head.starts_with("0123456789") && head.len() < 20_100);
    assert!(head.contains("[lines 2-2 of 3, bytes 6-"));
    assert!(cursor(&head).is_some());
    assert_eq!(read(&turn, json!({ "tail": 1 })), "last needle");
}

/// A long line is searched in windows: their first bytes do not count as the start of a line or a
/// word, and no part is skipped.
#[test]
fn a_long_line_is_searched_as_one() {
    let turn = turn();
    let mut line = format!("x{}", "0123456789".repeat(120_000));
    line.replace_range((1 << 20) - 3..(1 << 20) + 3, "astride");
    line.replace_range((1 << 20) + 20_000..(1 << 20) + 20_006, "behind");
    keep(&turn, line);
    assert_eq!(search(&turn, "^9"), "(no line matches)");
    assert_eq!(search(&turn, "\\b9"), "(no line matches)");
    assert!(search(&turn, "astride").contains("astride"));
    assert!(search(&turn, "behind").contains("behind"));
}

#[test]
fn a_result_of_many_megabytes_is_streamed_into_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let turn = turn_of(&Artifacts::new(FileStore::new(folder.path())), "c1");
    let mut writer = turn.writer(ArtifactSource::of("t", "call"), None).unwrap();
    let block = "a line of some words, as there are many\n".repeat(1_024);
    for _ in 0..100 {
        writer.write(block.as_bytes());
    }
    let artifact = writer.finish().unwrap();
    assert_eq!(artifact.entry().bytes, 100 * block.len() as u64);
    assert_eq!(artifact.entry().lines, 100 * 1_024 + 1);
    let range = artifact.content().line_range(80_000..80_001).unwrap();
    assert_eq!(artifact.content().read(range).unwrap(), b"a line of some words, as there are many");
    assert!(search(&turn, "nothing like it").starts_with("(no line matches)"));
}

#[test]
fn an_artifact_whose_folder_was_deleted_is_unknown_and_the_next_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("artifact_store");
    let turn = turn_of(&Artifacts::new(FileStore::new(&root)), "c1");
    keep(&turn, "one");
    std::fs::remove_dir_all(&root).unwrap();
    let error = ask(&turn, "artifact_read", json!({ "id": "call" })).unwrap_err();
    assert_eq!(error.message, "artifact `call` does not exist; there are none");
    keep_as(&turn, "next", "two");
    assert_eq!(ask(&turn, "artifact_read", json!({ "id": "next" })).unwrap(), "two");
}

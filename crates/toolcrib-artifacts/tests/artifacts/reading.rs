//! `artifact_read` and the pages of all answers.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_artifacts::{Artifacts, FileStore};

use crate::support::{ask, ask_within, body, cursor, forged, invalid, keep, turn, turn_of};

fn read(content: &str, args: Value) -> String {
    let turn = turn();
    keep(&turn, content);
    let mut args = args;
    args["id"] = json!("call");
    ask(&turn, "artifact_read", args).unwrap()
}

#[test]
fn the_last_line_is_the_one_that_was_written_last() {
    for content in ["one\ntwo\n", "one\ntwo", "one\r\ntwo"] {
        assert_eq!(read(content, json!({ "tail": 1 })), "two");
    }
    assert_eq!(read("one\n\n", json!({ "tail": 2 })), "one\n");
    assert_eq!(read("one\ntwo\n", json!({ "tail": 9 })), "one\ntwo");
}

#[test]
fn a_range_that_ends_in_front_of_where_it_begins_is_refused() {
    let turn = turn();
    keep(&turn, "one\ntwo\nthree");
    for part in ["lines", "bytes"] {
        let asked = |from, to| json!({ "id": "call", part: { "from": from, "to": to } });
        let message = invalid(ask(&turn, "artifact_read", asked(3, 2)));
        assert_eq!(message, format!("`{part}.from` is 3, after `{part}.to`, which is 2"));
        assert!(ask(&turn, "artifact_read", asked(2, 2)).is_ok());
    }
}

/// Case 51.
#[test]
fn case_51_head_tail_and_cat_clamp() {
    let five = "l0\nl1\nl2\nl3\nl4";
    let asked = |name: &str, args: Value| {
        let turn = turn();
        keep(&turn, five);
        forged(&turn, name, args).unwrap()
    };
    assert_eq!(asked("artifact_head", json!({ "n": 3 })), "l0\nl1\nl2");
    assert_eq!(asked("artifact_head", json!({ "n": 100 })), five);
    assert_eq!(asked("artifact_head", json!({})), five);
    assert_eq!(asked("artifact_tail", json!({ "n": 2 })), "l3\nl4");
    assert_eq!(asked("artifact_cat", json!({ "start": 1, "end": 4 })), "l1\nl2\nl3");
    assert_eq!(asked("artifact_cat", json!({ "start": -5, "end": 2 })), "l0\nl1");
    assert_eq!(asked("artifact_cat", json!({ "start": 3, "end": 100 })), "l3\nl4");
    assert_eq!(asked("artifact_cat", json!({ "start": 4, "end": 2 })), "(no lines)");
    assert_eq!(asked("artifact_cat", json!({})), five);
}

/// Case 54.
#[test]
fn case_54_the_whole_is_byte_for_byte_what_was_kept_and_tokens_are_of_these_bytes() {
    let content = "one\r\ntwo\r\n";
    assert_eq!(read(content, json!({})), content);
    let turn = turn();
    keep(&turn, content);
    // 10 bytes of 3.5 each.
    assert_eq!(forged(&turn, "artifact_estimate_tokens", json!({})).unwrap(), "3");
    assert_eq!(forged(&turn, "artifact_byte_length", json!({})).unwrap(), "10");
}

/// Case 55.
#[test]
fn case_55_a_last_feed_has_an_empty_line_behind_it_and_nothing_has_none() {
    for (content, lines, bytes) in [("a\nb\n", "3", "4"), ("", "0", "0"), ("a\nb", "2", "3")] {
        let turn = turn();
        keep(&turn, content);
        assert_eq!(forged(&turn, "artifact_line_count", json!({})).unwrap(), lines);
        assert_eq!(forged(&turn, "artifact_byte_length", json!({})).unwrap(), bytes);
    }
    let turn = turn();
    keep(&turn, "a\nb\n");
    assert_eq!(forged(&turn, "artifact_tail", json!({ "n": 2 })).unwrap(), "b\n");
    let last = forged(&turn, "artifact_tail", json!({ "n": 1 })).unwrap();
    assert_eq!(last, "(nothing)\n[1 empty line]", "no answer is blank");
}

#[test]
fn lines_are_counted_from_1_and_bytes_from_0() {
    let five = "l1\nl2\nl3\nl4\nl5";
    assert_eq!(read(five, json!({ "lines": { "from": 2, "to": 3 } })), "l2\nl3");
    assert_eq!(read(five, json!({ "lines": { "from": 4 } })), "l4\nl5");
    assert_eq!(read(five, json!({ "bytes": { "from": 3, "to": 5 } })), "l2");
    assert_eq!(read(five, json!({ "bytes": { "from": 12 } })), "l5");
    assert_eq!(read(five, json!({ "head": 1 })), "l1");
    assert_eq!(read(five, json!({ "tail": 1 })), "l5");
    let nothing = "(nothing)\n[the range is empty; the artifact has 14 bytes in 5 lines]";
    assert_eq!(read(five, json!({ "lines": { "from": 9 } })), nothing);
    assert_eq!(read(five, json!({ "bytes": { "from": 99, "to": 100 } })), nothing);
}

#[test]
fn only_one_part_is_read_at_a_time() {
    let turn = turn();
    keep(&turn, "x");
    let args = json!({ "id": "call", "head": 1, "tail": 1 });
    let message = invalid(ask(&turn, "artifact_read", args));
    assert_eq!(message, "give only one of `head`, `tail`, `lines` and `bytes`");
}

#[test]
fn an_answer_says_where_it_goes_on() {
    let turn = turn();
    let artifact = keep(&turn, (1..=500).map(|n| format!("line {n}\n")).collect::<String>());
    let args = json!({ "id": "call", "lines": { "from": 100, "to": 300 } });
    let first = ask_within(&turn, "artifact_read", args.clone(), 700).unwrap();
    let (shown, status) = first.rsplit_once('\n').unwrap();
    let digest = artifact.entry().digest.to_string();
    assert!(shown.starts_with("line 100\n") && shown.ends_with("line 139"), "{shown}");
    insta::assert_snapshot!(status.replace(&digest[..8], "DIGEST"), @r#"[lines 100-139 of 501, bytes 783-1143 of 4392; for more, ask the same with cursor "1143@DIGEST"]"#);
    // A page ends with a line even if all the rest was examined.
    let few = json!({ "id": "call", "lines": { "from": 100, "to": 142 } });
    assert_eq!(body(&ask_within(&turn, "artifact_read", few, 700).unwrap()), shown);
    let mut args = args;
    args["cursor"] = json!(cursor(&first).unwrap());
    let second = ask_within(&turn, "artifact_read", args.clone(), 700).unwrap();
    assert!(second.starts_with("line 140\n"), "{second}");
    let mut last = second;
    while let Some(cursor) = cursor(&last) {
        args["cursor"] = json!(cursor);
        last = ask_within(&turn, "artifact_read", args.clone(), 700).unwrap();
    }
    let status = last.rsplit_once('\n').unwrap().1;
    assert_eq!(status, "[lines 300-300 of 501, bytes 2583-2591 of 4392]");
}

#[test]
fn a_cursor_counts_for_the_content_that_it_was_given_for() {
    let turn = turn();
    keep(&turn, "x".repeat(1_000));
    let with = |cursor: &str| {
        invalid(ask(&turn, "artifact_read", json!({ "id": "call", "cursor": cursor })))
    };
    let other = "`cursor` belongs to other content: omit it to start over";
    assert_eq!(with("5@00000000"), other);
    for broken in ["", "5", "@", "x@00000000", "-1@00000000", "99999999999999999999@0"] {
        assert!(with(broken).starts_with("invalid `cursor`"), "{broken}");
    }
}

#[test]
fn a_random_range_of_a_large_content_reads_a_few_blocks() {
    // Reading uses the index, so this counts reads and no time.
    let folder = tempfile::tempdir().unwrap();
    let turn = turn_of(&Artifacts::new(FileStore::new(folder.path())), "c1");
    let content: String = (0..200_000).map(|n| format!("this is line number {n}\n")).collect();
    let artifact = keep(&turn, &content);
    for line in [0, 1, 77_777, 150_000, 199_999] {
        let range = artifact.content().line_range(line..line + 1).unwrap();
        let bytes = artifact.content().read(range.clone()).unwrap();
        assert_eq!(bytes, format!("this is line number {line}").as_bytes());
        assert_eq!(artifact.content().line_of(range.start).unwrap(), line);
        assert_eq!(artifact.content().line_of(range.end).unwrap(), line);
    }
    assert_eq!(artifact.content().line_start(200_000).unwrap(), content.len() as u64);
    assert_eq!(artifact.content().line_start(999_999).unwrap(), content.len() as u64);
}

/// The end of a long line is looked up, and later lines keep their positions.
#[test]
fn the_lines_behind_a_long_one_are_found() {
    let turn = turn();
    let long = "x".repeat(600_000);
    let artifact = keep(&turn, format!("first\n{long}\n\nlast\n{long}y"));
    let mut lines = artifact.content().lines_from(0).unwrap();
    let mut found = Vec::new();
    while let Some(line) = lines.next(3).unwrap() {
        found.push((line.number, line.start, line.length, String::from_utf8(line.bytes).unwrap()));
    }
    let line = |number, start, length, bytes: &str| (number, start, length, bytes.to_owned());
    assert_eq!(
        found,
        [
            line(0, 0, 5, "fir"),
            line(1, 6, 600_000, "xxx"),
            line(2, 600_007, 0, ""),
            line(3, 600_008, 4, "las"),
            line(4, 600_013, 600_001, "xxx"),
        ]
    );
}

/// Texts with short, long and empty lines, and all kinds of line ends.
fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-c ]{0,8}",
        3 => Just("\n".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => Just("é中🙂".to_owned()),
        1 => "[xy]{100,400}",
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    /// All pages together are the whole content, for any room.
    #[test]
    fn pages_together_are_the_whole(content in texts(), budget in 0_usize..900) {
        let turn = turn();
        keep(&turn, &content);
        let (mut all, mut cursor_now) = (String::new(), None);
        for _ in 0..10_000 {
            let mut args = json!({ "id": "call" });
            if let Some(cursor) = &cursor_now {
                args["cursor"] = json!(cursor);
            }
            let answer = ask_within(&turn, "artifact_read", args, budget).unwrap();
            prop_assert!(answer.chars().count() <= budget.max(280));
            cursor_now = cursor(&answer);
            // A page ends before its status, which has a separate line.
            let from: usize = all.len();
            let to = cursor_now.as_ref().map_or(content.len(), |cursor| {
                cursor.split_once('@').unwrap().0.parse().unwrap()
            });
            prop_assert!(to > from || content.is_empty());
            let shown = &content[from..to];
            let page = if from == 0 && cursor_now.is_none() { &answer } else { body(&answer) };
            let same = page == shown || page == shown.strip_suffix('\n').unwrap_or(shown)
                || shown.is_empty();
            prop_assert!(same, "{page:?} is not {shown:?}");
            all.push_str(shown);
            if cursor_now.is_none() {
                break;
            }
        }
        prop_assert_eq!(all, content);
    }

    /// Lines, and the bytes at their positions in the index, are the same text.
    #[test]
    fn reads_by_lines_and_by_bytes_agree(content in texts(), from in 0_u64..30, count in 0_u64..30) {
        let turn = turn();
        let artifact = keep(&turn, &content);
        let lines: Vec<&str> =
            if content.is_empty() { Vec::new() } else { content.split('\n').collect() };
        prop_assert_eq!(artifact.content().lines(), lines.len() as u64);
        let (a, b) = (lines.len().min(from as usize), lines.len().min((from + count) as usize));
        let expected = lines[a..b].join("\n");
        let range = artifact.content().line_range(from..from + count).unwrap();
        let bytes = artifact.content().read(range.clone()).unwrap();
        prop_assert_eq!(&bytes, expected.as_bytes());
        let by = |args: Value| {
            let mut args = args;
            args["id"] = json!("call");
            ask(&turn, "artifact_read", args).unwrap()
        };
        let by_lines = by(json!({ "lines": { "from": from + 1, "to": from + count.max(1) } }));
        let by_bytes = by(json!({ "bytes": { "from": range.start, "to": range.end } }));
        if count > 0 && !expected.is_empty() {
            prop_assert_eq!(&by_lines, &by_bytes);
            prop_assert_eq!(by_lines, expected);
        }
    }

    /// Iterating over lines gives the same as splitting.
    #[test]
    fn lines_one_after_the_other_are_those_of_the_text(
        content in texts(),
        from in 0_u64..5,
        room in 0_usize..50,
    ) {
        let turn = turn();
        let artifact = keep(&turn, &content);
        let mut lines = artifact.content().lines_from(from).unwrap();
        let expected: Vec<&str> =
            if content.is_empty() { Vec::new() } else { content.split('\n').collect() };
        for (number, text) in expected.iter().enumerate().skip(from as usize) {
            let line = lines.next(room).unwrap().unwrap();
            prop_assert_eq!(line.number, number as u64);
            prop_assert_eq!(line.length, text.len() as u64);
            prop_assert_eq!(&line.bytes[..], &text.as_bytes()[..room.min(text.len())]);
        }
        prop_assert_eq!(lines.next(room).unwrap(), None);
    }
}

//! `artifact_search` and `artifact_grep`.

use proptest::prelude::*;
use regex::bytes::RegexBuilder;
use serde_json::{Value, json};

use crate::support::{ask, ask_within, body, cursor, forged, invalid, keep, turn};

fn search(content: impl AsRef<[u8]>, args: Value) -> String {
    let turn = turn();
    keep(&turn, content);
    let mut args = args;
    args["id"] = json!("call");
    ask(&turn, "artifact_search", args).unwrap()
}

#[test]
fn lines_come_with_their_numbers_and_with_those_beside_them() {
    let log = "start\nok\nERROR one\nok\nok\nok\nERROR two\nERROR three\nend\n";
    assert_eq!(
        search(log, json!({ "pattern": "ERROR" })),
        "3:ERROR one\n7:ERROR two\n8:ERROR three"
    );
    insta::assert_snapshot!(search(log, json!({ "pattern": "error", "flags": "i", "context": 1 })), @r"
    2-ok
    3:ERROR one
    4-ok
    --
    6-ok
    7:ERROR two
    8:ERROR three
    9-end
    ");
    let all = search(log, json!({ "pattern": "ERROR", "context": 10 }));
    assert_eq!(all.lines().count(), 10, "each line once: {all}");
    let some = |limit: u64| search(log, json!({ "pattern": "^ok$", "limit": limit }));
    assert!(some(2).starts_with("2:ok\n4:ok\n[2 matching lines, up to line 4 of 10; for more"));
    assert!(some(1).starts_with("2:ok\n[1 matching line, up to line 2 of 10; for more"));
}

/// Case 52.
#[test]
fn case_52_where_nothing_matches_the_answer_is_not_blank() {
    assert_eq!(search("a\nb", json!({ "pattern": "c" })), "(no line matches)");
    let turn = turn();
    keep(&turn, "a\nb");
    assert_eq!(
        forged(&turn, "artifact_grep", json!({ "pattern": "c" })).unwrap(),
        "(no line matches)"
    );
}

/// Case 53.
#[test]
fn case_53_flags_are_i_m_s_and_u_or_none() {
    let turn = turn();
    keep(&turn, "A\nb");
    let grep =
        |flags: &str| forged(&turn, "artifact_grep", json!({ "pattern": "a", "flags": flags }));
    for flags in ["g", "y", "gi"] {
        assert!(
            invalid(grep(flags)).starts_with("`flags` may contain only i, m, s and u"),
            "{flags}"
        );
    }
    for (flags, found) in
        [("", "(no line matches)"), ("i", "A"), ("imsu", "A"), ("msu", "(no line matches)")]
    {
        assert_eq!(grep(flags).unwrap(), found, "{flags}");
    }
}

#[test]
fn what_cannot_be_searched_for_says_why() {
    let turn = turn();
    keep(&turn, "x");
    let said = |pattern: &str| {
        invalid(ask(&turn, "artifact_search", json!({ "id": "call", "pattern": pattern })))
    };
    let mut all = String::new();
    for pattern in ["(", "a{5,2}", "(?=x)", "\\1", "(?mR)a$", "[a"] {
        all += &format!("{pattern}  {}\n", said(pattern));
    }
    insta::assert_snapshot!(all, @r"
    (  `pattern` does not compile: unclosed group
    a{5,2}  `pattern` does not compile: invalid repetition count range, the start must be <= the end
    (?=x)  `pattern` does not compile: look-around, including look-ahead and look-behind, is not supported
    \1  `pattern` does not compile: backreferences are not supported
    (?mR)a$  `pattern` does not compile: the flag R is not supported; `$` matches before a CR LF anyway
    [a  `pattern` does not compile: unclosed character class
    ");
}

#[test]
fn the_end_of_a_line_is_in_front_of_a_cr_lf_too() {
    let log = "done\r\nnot done yet\r\n\r\n50%\r100%\r\ndone";
    let found = |pattern: &str| search(log, json!({ "pattern": pattern }));
    assert_eq!(found("done$"), "1:done\n5:done");
    assert_eq!(found("(?m)^done$"), "1:done\n5:done");
    assert_eq!(found("^$"), "3:");
    assert_eq!(found("^100%$"), "(no line matches)", "a CR alone ends no line");
    assert_eq!(found("^50%$"), "(no line matches)");
    assert_eq!(found("\\r$"), "1:done\n2:not done yet\n3:\n4:50%\r100%");
    // Also if a line is longer than a window.
    let long = format!("{}end\r\nend", "x".repeat(3_000_000));
    assert_eq!(search(long, json!({ "pattern": "d$" })).lines().count(), 2);
}

/// Patterns that would take unbounded time or memory elsewhere.
#[test]
fn bombs_are_refused_or_run_in_linear_time() {
    let turn = turn();
    keep(&turn, format!("{}b\n", "a".repeat(50_000)));
    let asked =
        |pattern: &str| ask(&turn, "artifact_search", json!({ "id": "call", "pattern": pattern }));
    assert!(invalid(asked("(((a{100}){100}){100}){100}")).contains("becomes too large"));
    assert!(invalid(asked("\\w{900}\\w{900}\\w{900}")).contains("becomes too large"));
    assert!(invalid(asked(&"(".repeat(400))).contains("does not compile"));
    assert!(invalid(asked(&format!("{}{}", "(a|".repeat(200), ")".repeat(200)))).contains("nest"));
    assert!(invalid(asked(&"a".repeat(1_001))).contains("longer than 1000"));
    assert_eq!(asked("(a+)+c").unwrap(), "(no line matches)");
    assert_eq!(asked("(a|a)*c$").unwrap(), "(no line matches)");
    assert!(asked("(.*)*b$").unwrap().starts_with("1:"));
}

#[test]
fn a_long_line_is_shown_around_its_match() {
    let line = format!("{}needle{}", "x".repeat(5_000), "y".repeat(5_000));
    let found = search(format!("first\n{line}\nlast"), json!({ "pattern": "needle" }));
    assert!(found.starts_with("2:…xxx") && found.contains("xneedley") && found.ends_with('…'));
    assert_eq!(found.chars().count(), "2:……".chars().count() + 400);
}

#[test]
fn a_line_of_400_characters_is_shown_in_full_whatever_they_are() {
    let wide = "\u{1d11e}".repeat(400);
    let content = format!("{wide}\n{wide}\nx{wide}\n");
    let found = search(content, json!({ "pattern": "^.{400}$", "context": 1, "limit": 2 }));
    assert!(found == format!("1:{wide}\n2:{wide}\n3-x{}…", "\u{1d11e}".repeat(399)), "{found}");
    let content = format!("{wide}\r\nneedle\n{wide}\r\n");
    let found = search(&content, json!({ "pattern": "needle", "context": 1 }));
    assert!(found == format!("1-{wide}\n2:needle\n3-{wide}"), "{found}");
    let found = search(&content, json!({ "pattern": "\u{1d11e}" }));
    assert!(found == format!("1:{wide}\n3:{wide}"), "{found}");
}

#[test]
fn a_line_is_shown_from_its_start_where_its_match_is_near() {
    for (before, start) in [(200, "1:xxx"), (201, "1:…xxx")] {
        let line = format!("{}needle", "x".repeat(before));
        let found = search(&line, json!({ "pattern": "needle" }));
        assert!(found.starts_with(start) && found.ends_with("xneedle"), "{before}: {found}");
    }
}

#[test]
fn an_answer_that_goes_on_says_how_far_it_came() {
    let turn = turn();
    keep(&turn, "a\n\nb\n");
    let mut args = json!({ "id": "call", "pattern": "^$", "limit": 1 });
    let first = ask(&turn, "artifact_search", args.clone()).unwrap();
    let mark = first.split_once('@').unwrap().1;
    let more = format!("for more, ask the same with cursor \"5@{mark}");
    assert_eq!(first, format!("2:\n[1 matching line, up to line 2 of 4; {more}"));
    // The last match is the empty line after the last LF.
    args["cursor"] = json!(cursor(&first).unwrap());
    assert_eq!(ask(&turn, "artifact_search", args).unwrap(), "4:");
}

#[test]
fn an_answer_that_just_fits_is_shown() {
    let within = |content: &str| {
        let turn = turn();
        keep(&turn, content);
        ask_within(&turn, "artifact_search", json!({ "id": "call", "pattern": "x" }), 500).unwrap()
    };
    let line = |chars: usize| "x".repeat(chars);
    // Truncated text uses all the room except for the LF.
    let cut = within(&line(399));
    let room = cut.chars().count() + 1;
    assert!(cut.ends_with('…') && room < 399, "{cut}");
    let fits = line(room - "1:\n".len());
    assert_eq!(within(&fits), format!("1:{fits}"));
    assert!(within(&format!("{fits}x")).ends_with('…'));
    let second = line(room - "1:xxx\n2:\n".len());
    assert_eq!(within(&format!("xxx\n{second}")), format!("1:xxx\n2:{second}"));
    let over = within(&format!("xxx\n{second}x"));
    assert!(body(&over) == "1:xxx" && cursor(&over).is_some(), "{over}");
}

#[test]
fn a_search_goes_on_where_it_stopped() {
    let turn = turn();
    keep(&turn, (0..5_000).map(|n| format!("{n}\n")).collect::<String>());
    for context in [0, 2] {
        let mut found = Vec::new();
        let mut args = json!({ "id": "call", "pattern": "7$", "limit": 13, "context": context });
        loop {
            let answer = ask_within(&turn, "artifact_search", args.clone(), 2_000).unwrap();
            let matches = body(&answer).lines().filter_map(|line| line.split_once(':'));
            found.extend(matches.map(|(_, line)| line.parse::<u64>().unwrap()));
            match cursor(&answer) {
                Some(cursor) => args["cursor"] = json!(cursor),
                None => break,
            }
        }
        let expected: Vec<u64> = (0..5_000).filter(|n| n % 10 == 7).collect();
        assert_eq!(found, expected, "context {context}");
    }
}

#[test]
fn a_cancelled_search_stops() {
    let turn = turn();
    keep(&turn, "x\n".repeat(1_000));
    let cx = crate::support::context(80_000);
    cx.cancellation().cancel();
    let tools = turn.artifacts().tools().unwrap();
    let args = json!({ "id": "call", "pattern": "y" });
    let error = crate::support::call(&tools[1], args, cx).unwrap_err();
    assert_eq!(error.code, toolcrib_core::ErrorCode::Cancelled);
}

/// The lines that match a pattern, one by one.
fn naive(content: &[u8], pattern: &str, ignore_case: bool) -> Vec<usize> {
    let regex = RegexBuilder::new(pattern).case_insensitive(ignore_case).build().unwrap();
    if content.is_empty() {
        return Vec::new();
    }
    let lines = content.split(|byte| *byte == b'\n').enumerate();
    let is_match = |line: &[u8]| {
        regex.is_match(line) || line.strip_suffix(b"\r").is_some_and(|line| regex.is_match(line))
    };
    lines.filter(|(_, line)| is_match(line)).map(|(number, _)| number + 1).collect()
}

proptest! {
    #[test]
    fn a_search_finds_what_a_naive_one_does(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                &b"a"[..], b"b", b"foo", b"Foo bar", b" ", b"\n", b"\n\n", b"\r\n", b"\r", b"\xff",
                b"\0",
                "é".as_bytes(), "中".as_bytes(),
            ]),
            0..60,
        ),
        pattern in prop::sample::select(&[
            "a", "^a", "a$", "^$", "", "foo", "(?i)FOO", "fo+|b", "\\bfoo\\b", "[^a]", "\\s", "\\s+$",
            "a\\nb", "[^x]b", ".", "^.*$", "(?s).", "(?s)a.b", "\\Aa", "a\\z", "\\W", "\\B", "(?m)^b",
            "(?-u:\\xff)", "é", "\\pL{2}", "a|^$", "$", "^", "\\D\\n?", "(?s:.)b", "[\\n]", "\\r$",
            "x*", "(foo|bar) ?$",
        ][..]),
        ignore_case: bool,
    ) {
        let content = parts.concat();
        let flags = if ignore_case { "i" } else { "" };
        let args = json!({ "pattern": pattern, "flags": flags, "limit": 1_000 });
        let answer = search(&content, args);
        let found: Vec<usize> = answer
            .split('\n')
            .filter_map(|line| line.split_once(':')?.0.parse().ok())
            .collect();
        prop_assert_eq!(found, naive(&content, pattern, ignore_case), "{}", answer);
    }
}

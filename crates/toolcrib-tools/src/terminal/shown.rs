//! A long output with its beginning, its end, and its failures.

use std::fmt::Write as _;

/// Words of lines that report failures, in lower case.
const FAILURES: [&str; 12] = [
    "error",
    "fail",
    "panicked",
    "exception",
    "traceback",
    "fatal",
    "assert",
    "cannot",
    "undefined",
    "not found",
    "denied",
    "abort",
];

/// The characters of a line that are searched for such words and shown.
pub(super) const LINE_CHARS: usize = 400;

/// The share of the room for the beginning, and for failures, in percent. The end has the rest.
const HEAD_PERCENT: usize = 30;
const FAILURES_PERCENT: usize = 25;

/// The characters for the lines that say what is left out.
const NOTE_CHARS: usize = 300;

/// The lines of a text, with their numbers.
pub(super) fn numbered(first: usize, text: &str) -> Vec<(usize, String)> {
    (first..).zip(text.lines().map(str::to_owned)).collect()
}

/// An output of which these lines are known, of so many. All of them, if they have at most `room`
/// characters. Otherwise the first and last ones, and of the others those that report failures, with their
/// numbers. `rest` says where the whole output is.
pub(super) fn condensed(
    lines: &[(usize, String)],
    total: usize,
    room: usize,
    rest: &str,
) -> String {
    let chars: usize = lines.iter().map(|(_, line)| line.chars().count() + 1).sum();
    if lines.len() == total && chars <= room + 1 {
        let lines: Vec<_> = lines.iter().map(|(_, line)| line.as_str()).collect();
        return lines.join("\n").trim_end().to_owned();
    }
    let room = room.saturating_sub(NOTE_CHARS + rest.chars().count());
    // Only lines without a gap before them, or after them, are the beginning or the end.
    let beginning = (1..).zip(lines).take_while(|(at, (number, _))| at == number);
    let head = fitting(beginning.map(|(_, (_, line))| line.as_str()), room * HEAD_PERCENT / 100);
    let inner = lines.get(head.len()..).unwrap_or_default();
    let tail_room = room * (100 - HEAD_PERCENT - FAILURES_PERCENT) / 100;
    let ending =
        (0..).zip(inner.iter().rev()).take_while(|(at, (number, _))| total - at == *number);
    let mut tail = fitting(ending.map(|(_, (_, line))| line.as_str()), tail_room);
    tail.reverse();
    let middle = inner.get(..inner.len().saturating_sub(tail.len())).unwrap_or_default();
    let mut shown = String::new();
    let mut push = |line: &str| {
        shown.push_str(line);
        shown.push('\n');
    };
    head.iter().for_each(|line| push(line));
    push(&format!("[{} lines left out; {rest}]", total.saturating_sub(head.len() + tail.len())));
    let mut left = room * FAILURES_PERCENT / 100;
    let mut more = 0_usize;
    for (number, line) in middle {
        let line: String = line.chars().take(LINE_CHARS).collect();
        if !reports_failure(&line) {
            continue;
        }
        let line = format!("{number}: {line}");
        match left.checked_sub(line.chars().count() + 1) {
            Some(rest) if more == 0 => {
                left = rest;
                push(&line);
            }
            _ => more += 1,
        }
    }
    if more > 0 {
        push(&format!("[{more} more lines that report failures]"));
    }
    tail.iter().for_each(|line| push(line));
    shown.truncate(shown.trim_end().len());
    shown
}

pub(super) fn reports_failure(line: &str) -> bool {
    let lower = line.to_lowercase();
    FAILURES.iter().any(|word| lower.contains(word))
}

/// The lines, in order, that have room; of a first line that has none, its beginning.
fn fitting<'a>(lines: impl Iterator<Item = &'a str>, room: usize) -> Vec<String> {
    let mut fitting = Vec::new();
    let mut left = room;
    for line in lines {
        let chars = line.chars().count() + 1;
        if chars > left {
            if fitting.is_empty() && left > 1 {
                let mut start: String = line.chars().take(left.saturating_sub(1)).collect();
                let _ = write!(start, "…");
                fitting.push(start);
            }
            break;
        }
        left -= chars;
        fitting.push(line.to_owned());
    }
    fitting
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_beginning_the_end_and_the_failures_remain() {
        let mut lines: Vec<_> = (1..=500).map(|number| format!("compiled part {number}")).collect();
        lines[250] = "error[E0308]: mismatched types".to_owned();
        lines[300] = "test parse ... FAILED".to_owned();
        let shown = whole(&lines.join("\n"), 1_500, "the whole output is artifact a1");
        assert!(shown.starts_with("compiled part 1\ncompiled part 2\n"), "{shown}");
        assert!(shown.ends_with("compiled part 500"), "{shown}");
        assert!(shown.contains("\n251: error[E0308]: mismatched types\n"), "{shown}");
        assert!(shown.contains("\n301: test parse ... FAILED\n"), "{shown}");
        assert!(shown.contains(" lines left out; the whole output is artifact a1]"), "{shown}");
        assert!(shown.chars().count() <= 1_500);
        assert_eq!(whole("a\nb", 10, "x"), "a\nb");
    }

    fn whole(text: &str, room: usize, rest: &str) -> String {
        let lines = numbered(1, text);
        condensed(&lines, lines.len(), room, rest)
    }

    #[test]
    fn lines_that_are_not_known_are_left_out_and_counted() {
        let mut lines = numbered(1, "one\ntwo");
        lines.push((500, "error: lost".to_owned()));
        lines.extend(numbered(999, "last\nend"));
        let shown = condensed(&lines, 1_000, 2_000, "see a1");
        assert_eq!(shown, "one\ntwo\n[996 lines left out; see a1]\n500: error: lost\nlast\nend");
    }

    proptest! {
        #[test]
        fn an_output_has_its_room(
            lines in prop::collection::vec((any::<bool>(), 0_usize..120), 0..200),
            room in 500_usize..3_000,
        ) {
            let line = |(fails, length): &(bool, usize)| {
                format!("{}{}", if *fails { "error " } else { "" }, "\u{e9}".repeat(*length))
            };
            let lines: Vec<_> = lines.iter().map(line).collect();
            let shown = whole(&lines.join("\n"), room, "");
            prop_assert!(shown.chars().count() <= room, "{} {room}", shown.chars().count());
        }

        #[test]
        fn a_long_line_has_its_room(length in 0_usize..9_000, room in 500_usize..3_000) {
            prop_assert!(whole(&"x".repeat(length), room, "").chars().count() <= room);
        }
    }
}

//! A long output with its beginning, its end, and its failures.

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

/// The numbers of an output.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineCounts {
    /// All lines.
    pub(super) all: usize,
    /// The lines that report failures.
    pub(super) failed: usize,
    /// Whether only a part of the first line is known.
    pub(super) begins_in_part: bool,
}

impl LineCounts {
    /// The numbers of an output that is known.
    pub(super) fn of(lines: &[(usize, String)]) -> Self {
        Self { all: lines.len(), failed: failed(lines), begins_in_part: false }
    }
}

/// The lines that are known of an output with this number of lines. All of them, if they have at most `room`
/// characters. Otherwise the first and last ones, and of the others those that report failures, with their
/// numbers. `rest` says where the whole output is.
pub(super) fn condensed(
    lines: &[(usize, String)],
    total: LineCounts,
    room: usize,
    rest: &str,
) -> String {
    let chars: usize = lines.iter().map(|(_, line)| line.chars().count() + 1).sum();
    if lines.len() == total.all && !total.begins_in_part && chars <= room + 1 {
        let lines: Vec<_> = lines.iter().map(|(_, line)| line.as_str()).collect();
        return lines.join("\n").trim_end().to_owned();
    }
    let room = room.saturating_sub(NOTE_CHARS + rest.chars().count());
    // Only lines without a gap before them, or after them, are the beginning or the end.
    let beginning = (1..).zip(lines).take_while(|(at, (number, _))| at == number);
    let head = fitting(beginning.map(|(_, (_, line))| line.as_str()), room * HEAD_PERCENT / 100);
    let (first, inner) = lines.split_at(head.lines.len().min(lines.len()));
    let tail_room = room * (100 - HEAD_PERCENT - FAILURES_PERCENT) / 100;
    let ending =
        (0..).zip(inner.iter().rev()).take_while(|(at, (number, _))| total.all - at == *number);
    let mut tail = fitting(ending.map(|(_, (_, line))| line.as_str()), tail_room);
    tail.lines.reverse();
    let (middle, last) = inner.split_at(inner.len().saturating_sub(tail.lines.len()));
    let failures = failures(middle, room * FAILURES_PERCENT / 100);
    let more = total.failed.saturating_sub(failed(first) + failed(last) + failures.len());
    let shown = head.lines.len() + failures.len() + tail.lines.len();
    let is_cut = head.is_cut || tail.is_cut || total.begins_in_part;
    let gap = match (total.all.saturating_sub(shown), is_cut) {
        (0, _) => "a part of a line is left out".to_owned(),
        (left_out, false) => format!("{left_out} lines left out"),
        (left_out, true) => format!("{left_out} lines and a part of a line left out"),
    };
    let mut all = head.lines;
    all.push(format!("[{gap}; {rest}]"));
    all.extend(failures);
    if more > 0 {
        all.push(format!("[{more} more lines that report failures]"));
    }
    all.extend(tail.lines);
    let mut text = all.join("\n");
    text.truncate(text.trim_end().len());
    text
}

/// A text, and before it the lines of what is gone that report failures, of which there are `more`.
pub(super) fn with_failures(
    lines: &[(usize, String)],
    more: usize,
    room: usize,
    text: impl FnOnce(usize) -> String,
) -> String {
    if lines.is_empty() {
        return text(room);
    }
    let shown = failures(lines, (room * FAILURES_PERCENT / 100).saturating_sub(NOTE_CHARS));
    let more = more + lines.len() - shown.len();
    let mut all = vec!["[lines that report failures, of those that are gone:]".to_owned()];
    all.extend(shown);
    all.extend((more > 0).then(|| format!("[{more} more lines that report failures]")));
    all.push("[the output that is kept:]".to_owned());
    all.push(text(room * (100 - FAILURES_PERCENT) / 100));
    all.join("\n")
}

/// The first lines that report failures, with their numbers, as far as there is room.
fn failures(lines: &[(usize, String)], room: usize) -> Vec<String> {
    let mut left = room;
    let shown = |(number, line): &(usize, String)| {
        let end = line.char_indices().nth(LINE_CHARS).map(|(at, _)| at);
        match end.and_then(|end| line.get(..end)) {
            Some(start) => format!("{number}: {start}\u{2026}"),
            None => format!("{number}: {line}"),
        }
    };
    let failed = lines.iter().filter(|(_, line)| reports_failure(line)).map(shown);
    let fits = |line: &String| {
        let rest = left.checked_sub(line.chars().count() + 1);
        left = rest.unwrap_or_default();
        rest.is_some()
    };
    failed.take_while(fits).collect()
}

/// The number of lines that report failures.
pub(super) fn failed(lines: &[(usize, String)]) -> usize {
    lines.iter().filter(|(_, line)| reports_failure(line)).count()
}

/// Whether the beginning of a line reports a failure.
pub(super) fn reports_failure(line: &str) -> bool {
    let start = line.char_indices().nth(LINE_CHARS).and_then(|(at, _)| line.get(..at));
    let lower = start.unwrap_or(line).to_lowercase();
    FAILURES.iter().any(|word| lower.contains(word))
}

/// Lines that have room.
struct FittingLines {
    lines: Vec<String>,
    /// Whether it is the beginning of one line.
    is_cut: bool,
}

/// The lines, in order, that have room; of a first line that has none, its beginning.
fn fitting<'a>(lines: impl Iterator<Item = &'a str>, room: usize) -> FittingLines {
    let mut fitting = FittingLines { lines: Vec::new(), is_cut: false };
    let mut left = room;
    for line in lines {
        let chars = line.chars().count() + 1;
        if chars > left {
            if fitting.lines.is_empty() && left > 1 {
                let mut start: String = line.chars().take(left.saturating_sub(1)).collect();
                start.push('\u{2026}');
                fitting.lines.push(start);
                fitting.is_cut = true;
            }
            break;
        }
        left -= chars;
        fitting.lines.push(line.to_owned());
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
        let long = whole(&"x".repeat(9_000), 1_000, "see a1");
        assert!(long.ends_with("\u{2026}\n[a part of a line is left out; see a1]"), "{long}");
    }

    fn whole(text: &str, room: usize, rest: &str) -> String {
        let lines = numbered(1, text);
        condensed(&lines, LineCounts::of(&lines), room, rest)
    }

    #[test]
    fn lines_that_are_not_known_are_left_out_and_counted() {
        let mut lines = numbered(1, "one\ntwo");
        lines.push((500, "error: lost".to_owned()));
        lines.extend(numbered(999, "last\nend"));
        let total = LineCounts { all: 1_000, failed: 3, begins_in_part: false };
        let shown = condensed(&lines, total, 2_000, "see a1");
        assert_eq!(
            shown,
            "one\ntwo\n[995 lines left out; see a1]\n500: error: lost\n\
             [2 more lines that report failures]\nlast\nend"
        );
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
        fn what_is_left_out_is_counted(
            lines in prop::collection::vec((any::<bool>(), 0_usize..120), 100..200),
            room in 500_usize..3_000,
        ) {
            let line = |(fails, length): &(bool, usize)| {
                format!("{}{}", if *fails { "error " } else { "" }, "x".repeat(*length))
            };
            let lines: Vec<_> = lines.iter().map(line).collect();
            let total = lines.iter().filter(|line| reports_failure(line)).count();
            let shown = whole(&lines.join("\n"), room, "");
            let number = |end: &str| {
                let note = shown.lines().find(|line| line.starts_with('[') && line.contains(end));
                let number = note.and_then(|note| note[1..].split(' ').next()?.parse().ok());
                number.unwrap_or(0_usize)
            };
            let is_note = |line: &&str| line.starts_with('[');
            let notes = shown.lines().filter(is_note).count();
            if notes > 0 {
                // Blank lines at the end are not shown.
                let blank = lines.iter().rev().take_while(|line| line.is_empty()).count();
                let seen = shown.lines().count() - notes;
                let left_out = number("left out");
                prop_assert!(left_out + seen <= lines.len());
                prop_assert!(left_out + seen + blank >= lines.len());
                let failed = shown.lines().filter(|line| line.contains("error")).count();
                prop_assert_eq!(failed + number("more lines that report"), total);
            }
        }

        #[test]
        fn a_long_line_has_its_room(length in 0_usize..9_000, room in 500_usize..3_000) {
            prop_assert!(whole(&"x".repeat(length), room, "").chars().count() <= room);
        }
    }
}

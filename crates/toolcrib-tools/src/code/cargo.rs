//! The output of cargo with `--message-format short`, and of Rust's tests.

use std::collections::HashSet;

use super::{
    Report,
    problem::{Level, Problem, placed},
};

pub(super) fn read(output: &str) -> Report {
    let mut report = Report::default();
    let mut lines = output.lines().peekable();
    let mut failed: Vec<String> = Vec::new();
    // The test whose output is being read.
    let mut of_test = None;
    while let Some(line) = lines.next() {
        if let Some(panic) = line.trim_start().strip_prefix("thread '") {
            // thread 'name' (123) panicked at src/lib.rs:10:5:
            let Some((test, rest)) = panic.split_once('\'') else { continue };
            let Some((_, at)) = rest.split_once("panicked at ") else { continue };
            let place = placed(at).map(|(place, _)| place);
            let mut message = Vec::new();
            while let Some(next) = lines.peek().filter(|next| !ends_message(next)) {
                message.push(next.trim());
                lines.next();
            }
            report.problems.push(Problem::of_test(place, test, &message.join(" ")));
        } else if let Some(test) =
            line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----"))
        {
            of_test = Some(test);
        } else if let (Some(test), true) = (of_test, line.starts_with("Error: ")) {
            report.problems.push(Problem::of_test(None, test, line));
        } else if let Some(result) = line.strip_prefix("test result: ") {
            of_test = None;
            report.passed += count(result, " passed");
            report.failed += count(result, " failed");
            report.has_counts = true;
        } else if let Some(test) =
            line.strip_prefix("test ").and_then(|test| test.strip_suffix(" ... FAILED"))
        {
            failed.push(test.to_owned());
        } else if let Some((place, rest)) = placed(line) {
            let level = rest.split([':', '[', ' ']).next().unwrap_or_default();
            if matches!(level, "error" | "warning") {
                let message = rest.split_once(": ").map_or(rest, |(_, message)| message);
                report.problems.push(Problem::new(Some(place), Level::of(level), message));
            }
        } else if let Some(message) = line.strip_prefix("error: ") {
            // The summary of errors that were already reported, and of failed tests.
            let is_summary = ["could not compile", "test failed, to rerun", "aborting due to"]
                .iter()
                .any(|start| message.starts_with(start))
                || message.ends_with("target failed:")
                || message.ends_with("targets failed:");
            if !is_summary {
                report.problems.push(Problem::new(None, Level::Error, message));
            }
        }
    }
    // A test that failed without a panic, such as one that returned an error.
    let known: HashSet<_> =
        report.problems.iter().filter_map(|problem| problem.test.clone()).collect();
    let silent = failed.iter().filter(|test| !known.contains(&***test));
    report.problems.extend(silent.map(|test| Problem::of_test(None, test, "")));
    report.drop_repeats();
    report
}

fn ends_message(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with("note: ") || line.starts_with("stack backtrace")
}

/// The number before a word: `3 passed`.
pub(super) fn count(text: &str, word: &str) -> usize {
    let before = text.split_once(word).map(|(before, _)| before).unwrap_or_default();
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or_default()
}

//! The output of pytest with `--tb=short`, of unittest, ruff, flake8 and mypy, and of
//! Python itself.

use std::str::FromStr;

use super::{
    Report,
    cargo::count,
    problem::{Level, Place, Problem, placed},
};

pub(super) fn read(output: &str) -> Report {
    let mut reader = Reader::default();
    output.lines().for_each(|line| reader.read(line));
    reader.report.drop_repeats();
    reader.report
}

/// The report so far, and the state between lines.
#[derive(Default)]
struct Reader<'o> {
    report: Report,
    /// The failed tests by title, each with the last place of its traceback: where it was raised.
    places: Vec<(&'o str, Option<Place>)>,
    /// The last place of an error outside of tests.
    raised: Option<Place>,
    /// The test of `unittest` that a traceback follows.
    unittest: Option<&'o str>,
}

impl<'o> Reader<'o> {
    fn read(&mut self, line: &'o str) {
        let report = &mut self.report;
        if let Some(test) = line.strip_prefix("FAIL: ").or(line.strip_prefix("ERROR: ")) {
            self.unittest = test.split(' ').next();
        } else if let Some(all) = line.strip_prefix("Ran ") {
            report.passed = all.split(' ').next().unwrap_or_default().parse().unwrap_or_default();
            report.has_counts = true;
        } else if let Some(result) = line.strip_prefix("FAILED (") {
            report.failed = number_after(result, "failures=") + number_after(result, "errors=");
            report.passed = report.passed.saturating_sub(report.failed);
        } else if let Some(at) = line.trim_start().strip_prefix("File \"") {
            self.raised = of_traceback(at).or(self.raised.take());
        } else if self.places.is_empty() && self.raised.is_some() && is_error(line) {
            report.problems.push(match self.unittest.take() {
                Some(test) => Problem::of_test(self.raised.take(), test, line),
                None => Problem::new(self.raised.take(), Level::Error, line),
            });
        } else if let Some(title) =
            line.strip_prefix("____").and_then(|line| line.strip_suffix("____"))
        {
            self.places.push((title.trim_matches(['_', ' ']), None));
        } else if let Some(failed) = line.strip_prefix("FAILED ").or(line.strip_prefix("ERROR ")) {
            let problem = self.failed_test(failed);
            self.report.problems.push(problem);
        } else if let Some((place, rest)) = placed(line) {
            match self.places.last_mut() {
                // tests/test_a.py:5: in test_x
                Some((_, last)) => *last = Some(place),
                None => report.problems.push(diagnostic(place, rest)),
            }
        } else if line.contains(" in ")
            && (line.contains(" passed") || line.contains(" failed") || line.contains(" error"))
        {
            report.passed = count(line, " passed");
            report.failed = count(line, " failed") + count(line, " error");
            report.has_counts = true;
        }
    }

    /// A failed test in the summary of pytest: `tests/test_a.py::test_x - assert 1 == 2`.
    fn failed_test(&self, failed: &str) -> Problem {
        let (id, message) = failed.split_once(" - ").unwrap_or((failed, ""));
        let (file, test) = id.split_once("::").unwrap_or((id, id));
        let title = test.replace("::", ".");
        let raised = self.places.iter().find(|(known, _)| *known == title);
        let start = || Place { file: file.to_owned(), line: 1, column: None };
        let place = raised.and_then(|(_, place)| place.clone()).unwrap_or_else(start);
        Problem::of_test(Some(place), test, message)
    }
}

/// Whether a line is the error at the end of a traceback: `ValueError: too large`.
fn is_error(line: &str) -> bool {
    let name = line.split_once("Error: ").map(|(name, _)| name);
    name.is_some_and(|name| name.chars().all(char::is_alphanumeric))
}

/// The problem of a linter or a type checker at a place.
fn diagnostic(place: Place, rest: &str) -> Problem {
    match rest.split_once(": ") {
        Some((word @ ("error" | "warning" | "note"), message)) => {
            Problem::new(Some(place), Level::of(word), message)
        }
        _ => Problem::new(Some(place), Level::Error, rest),
    }
}

fn number_after(text: &str, word: &str) -> usize {
    let after = text.split_once(word).map(|(_, after)| after).unwrap_or_default();
    leading(after).unwrap_or_default()
}

/// `app/a.py", line 3, in <module>`
fn of_traceback(at: &str) -> Option<Place> {
    let (file, rest) = at.split_once("\", line ")?;
    let file = file.strip_prefix("./").unwrap_or(file).to_owned();
    Some(Place { file, line: leading(rest)?, column: None })
}

/// The number at the beginning of a text.
fn leading<N: FromStr>(text: &str) -> Option<N> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

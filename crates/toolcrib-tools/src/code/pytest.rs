//! The output of pytest with `--tb=short`, of unittest, ruff, flake8 and mypy, and of
//! Python itself.

use super::{
    Report,
    cargo::count,
    problem::{Level, Place, Problem, placed},
};

pub(super) fn read(output: &str) -> Report {
    let mut report = Report::default();
    // The place where the present failure was raised: the last one of its traceback.
    let mut places: Vec<(String, Option<Place>)> = Vec::new();
    // The last place of an error outside of tests.
    let mut raised = None;
    // The test of `unittest` that a traceback follows.
    let mut of_test = None;
    for line in output.lines() {
        if let Some(test) = line.strip_prefix("FAIL: ").or(line.strip_prefix("ERROR: ")) {
            of_test = test.split(' ').next();
            continue;
        }
        if let Some(all) = line.strip_prefix("Ran ").and_then(|line| line.split(' ').next()) {
            report.passed = all.parse().unwrap_or_default();
            report.has_counts = true;
            continue;
        }
        if let Some(result) = line.strip_prefix("FAILED (") {
            report.failed = number_after(result, "failures=") + number_after(result, "errors=");
            report.passed = report.passed.saturating_sub(report.failed);
            continue;
        }
        if let Some(at) = line.trim_start().strip_prefix("File \"") {
            raised = of_traceback(at).or(raised);
        } else if let Some(error) = line.split_once("Error: ").filter(|(name, _)| {
            places.is_empty() && raised.is_some() && name.chars().all(char::is_alphanumeric)
        }) {
            let message = format!("{}Error: {}", error.0, error.1);
            report.problems.push(match of_test.take() {
                Some(test) => Problem::of_test(raised.take(), test, &message),
                None => Problem::new(raised.take(), Level::Error, &message),
            });
        } else if let Some(title) =
            line.strip_prefix("____").and_then(|line| line.strip_suffix("____"))
        {
            places.push((title.trim_matches(['_', ' ']).to_owned(), None));
        } else if let Some(failed) = line.strip_prefix("FAILED ").or(line.strip_prefix("ERROR ")) {
            let (id, message) = failed.split_once(" - ").unwrap_or((failed, ""));
            let test = id.split_once("::").map_or(id, |(_, test)| test);
            let title = test.replace("::", ".");
            let place = places.iter().find(|(known, _)| *known == title);
            let place = place.and_then(|(_, place)| place.clone()).or_else(|| {
                let file = id.split("::").next().unwrap_or_default().to_owned();
                Some(Place { file, line: 1, column: None })
            });
            report.problems.push(Problem::of_test(place, test, message));
        } else if let Some((place, rest)) = placed(line) {
            match places.last_mut() {
                // tests/test_a.py:5: in test_x
                Some((_, last)) => *last = Some(place),
                None => {
                    let (word, message) = rest.split_once(": ").unwrap_or(("error", rest));
                    let is_level = matches!(word, "error" | "warning" | "note");
                    let message = if is_level { message } else { rest };
                    let level = if is_level { Level::of(word) } else { Level::Error };
                    report.problems.push(Problem::new(Some(place), level, message));
                }
            }
        } else if line.contains(" in ")
            && (line.contains(" passed") || line.contains(" failed") || line.contains(" error"))
        {
            report.passed = count(line, " passed");
            report.failed = count(line, " failed") + count(line, " error");
            report.has_counts = true;
        }
    }
    report.drop_repeats();
    report
}

fn number_after(text: &str, word: &str) -> usize {
    let after = text.split_once(word).map(|(_, after)| after).unwrap_or_default();
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_default()
}

/// `app/a.py", line 3, in <module>`
fn of_traceback(at: &str) -> Option<Place> {
    let (file, rest) = at.split_once("\", line ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let file = file.strip_prefix("./").unwrap_or(file).to_owned();
    Some(Place { file, line: digits.parse().ok()?, column: None })
}

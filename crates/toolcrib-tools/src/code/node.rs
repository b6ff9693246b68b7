//! The outputs of tsc, ESLint, and of test runners for Node: `node --test`, Jest, Vitest, Mocha.

use super::{
    Report,
    cargo::count,
    problem::{Level, Place, Problem, placed},
};

pub(super) fn read(output: &str) -> Report {
    let mut report = Report::default();
    let mut file = None;
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if let Some(problem) = of_tsc(trimmed).or_else(|| of_eslint(trimmed, file)) {
            report.problems.push(problem);
        } else if let Some(test) = failed_test(trimmed) {
            // The place is the first one of its stack, before the next test.
            let (mut place, mut message) = (None, String::new());
            while let Some(next) = lines.peek().copied().map(str::trim) {
                if failed_test(next).is_some() || next.starts_with("# ") || next.starts_with("ok ")
                {
                    break;
                }
                place = place.or_else(|| of_stack(next));
                let (begins, is_block) = (says_why(next), next == "error: |-");
                lines.next();
                if message.is_empty() && is_block {
                    // The lines of a block in YAML, which end before the next key.
                    let is_in = |line: &&str| {
                        !line.trim().starts_with("code: ") && !line.trim().starts_with("name: ")
                    };
                    while let Some(line) = lines.next_if(is_in) {
                        message = format!("{message} {}", line.trim());
                    }
                } else if message.is_empty() && begins {
                    message = next.trim_start_matches("error: ").trim_matches('\'').to_owned();
                }
                if place.is_some() && !message.is_empty() {
                    break;
                }
            }
            report.problems.push(Problem::of_test(place, test, &message));
        } else if let Some(number) =
            trimmed.strip_prefix("# pass ").or(trimmed.strip_prefix("ℹ pass "))
        {
            report.passed = number.trim().parse().unwrap_or_default();
            report.has_counts = true;
        } else if let Some(number) =
            trimmed.strip_prefix("# fail ").or(trimmed.strip_prefix("ℹ fail "))
        {
            report.failed = number.trim().parse().unwrap_or_default();
            report.has_counts = true;
        } else if trimmed.starts_with("Tests:") || trimmed.starts_with("Tests  ") {
            (report.passed, report.failed) = (count(trimmed, " passed"), count(trimmed, " failed"));
            report.has_counts = true;
        } else if is_path(trimmed) {
            // ESLint writes the file above its problems.
            file = Some(trimmed);
        }
    }
    report.drop_repeats();
    report
}

/// `src/a.ts(3,5): error TS2322: message`
fn of_tsc(line: &str) -> Option<Problem> {
    let (file, rest) = line.split_once('(')?;
    let (at, rest) = rest.split_once("): ")?;
    let (row, column) = at.split_once(',')?;
    let place = Place {
        file: file.to_owned(),
        line: row.parse().ok()?,
        column: Some(column.parse().ok()?),
    };
    let (level, message) = rest.split_once(' ')?;
    matches!(level, "error" | "warning")
        .then(|| Problem::new(Some(place), Level::of(level), message))
}

/// `3:5  error  message  rule`, below the name of the file.
fn of_eslint(line: &str, file: Option<&str>) -> Option<Problem> {
    let mut words = line.split_whitespace();
    let (row, column) = words.next()?.split_once(':')?;
    let level = words.next().filter(|level| matches!(*level, "error" | "warning"))?;
    let place = Place {
        file: file?.to_owned(),
        line: row.parse().ok()?,
        column: Some(column.parse().ok()?),
    };
    let message: Vec<_> = words.collect();
    Some(Problem::new(Some(place), Level::of(level), &message.join(" ")))
}

/// The name of a test that a line reports as failed.
fn failed_test(line: &str) -> Option<&str> {
    let named = line
        .strip_prefix("✖ ")
        .or(line.strip_prefix("✕ "))
        .or(line.strip_prefix("● "))
        .or(line.strip_prefix("× "))
        .or_else(|| {
            line.strip_prefix("not ok ")
                .and_then(|line| line.split_once(" - "))
                .map(|(_, name)| name)
        });
    let name = named?.trim();
    let name = name
        .rsplit_once(" (")
        .filter(|(_, time)| time.ends_with("ms)"))
        .map_or(name, |(name, _)| name);
    (!name.is_empty() && !name.starts_with("failing tests") && !is_summary(name)).then_some(name)
}

/// ESLint's last line: `2 problems (1 error, 1 warning)`.
fn is_summary(name: &str) -> bool {
    let words: Vec<_> = name.split(' ').take(2).collect();
    matches!(words.as_slice(), [number, "problem" | "problems"] if number.parse::<u32>().is_ok())
}

fn says_why(line: &str) -> bool {
    ["error: ", "AssertionError", "Error: ", "TypeError", "ReferenceError", "Expected", "expect("]
        .iter()
        .any(|start| line.starts_with(start))
}

/// `at name (/path/a.js:3:5)`, `at /path/a.js:3:5`, `location: '/path/a.js:3:1'`
fn of_stack(line: &str) -> Option<Place> {
    let at = line.strip_prefix("at ").or(line.strip_prefix("location: "))?;
    let at = at.rsplit_once('(').map_or(at, |(_, at)| at);
    let at = at.trim_matches(['\'', ')', ' ']).trim_start_matches("file://");
    let (place, _) = placed(at)?;
    (!place.file.contains("node_modules") && !place.file.starts_with("node:")).then_some(place)
}

fn is_path(line: &str) -> bool {
    let ends = [".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".vue", ".svelte"];
    !line.contains(' ') && ends.iter().any(|end| line.ends_with(end))
}

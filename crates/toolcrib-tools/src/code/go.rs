//! The output of `go build`, `go vet` and `go test -v`.

use std::collections::HashSet;

use super::{
    Report,
    problem::{Level, Place, Problem, placed},
};

/// The messages of a running test.
#[derive(Default)]
struct RunningTest {
    name: String,
    place: Option<Place>,
    message: Vec<String>,
}

pub(super) fn read(output: &str) -> Report {
    let mut report = Report::default();
    let mut running: Vec<RunningTest> = Vec::new();
    // The tests with a failed subtest. Each level of nested ones prints its own line.
    let failed = output.lines().filter_map(|line| line.trim_start().strip_prefix("--- FAIL: "));
    let failed = failed.filter_map(|rest| rest.split(' ').next()?.rsplit_once('/'));
    let parents: HashSet<&str> = failed.map(|(parent, _)| parent).collect();
    for line in output.lines() {
        let trimmed = line.trim_start();
        let named = |mark: &str| {
            trimmed.strip_prefix(mark).map(|rest| rest.split(' ').next().unwrap_or_default())
        };
        if let Some(name) = named("=== RUN   ").or(named("=== NAME  ")).or(named("=== CONT  ")) {
            match running.iter().position(|known| known.name == name) {
                Some(at) => {
                    let known = running.remove(at);
                    running.push(known);
                }
                None => {
                    running.push(RunningTest { name: name.to_owned(), ..RunningTest::default() });
                }
            }
        } else if let Some(name) = named("--- FAIL: ") {
            (report.failed, report.has_counts) =
                (report.failed + usize::from(!trimmed_is_nested(line)), true);
            let at = running.iter().position(|known| known.name == name);
            let test = at.map(|at| running.remove(at)).unwrap_or_default();
            // The parent of a failed subtest has no messages of its own, in most cases.
            let is_parent = parents.contains(name);
            if test.place.is_some() || !test.message.is_empty() || !is_parent {
                report.problems.push(Problem::of_test(test.place, name, &test.message.join(" ")));
            }
        } else if let Some(name) = named("--- PASS: ") {
            (report.passed, report.has_counts) =
                (report.passed + usize::from(!trimmed_is_nested(line)), true);
            running.retain(|known| known.name != name);
        } else if let Some(message) = line.strip_prefix("panic: ") {
            report.problems.push(Problem::new(None, Level::Error, message));
        } else if let (Some(test), true) = (running.last_mut(), line.starts_with("    ")) {
            match placed(trimmed) {
                Some((place, rest)) => {
                    test.place.get_or_insert(place);
                    test.message.push(rest.to_owned());
                }
                None => test.message.push(trimmed.to_owned()),
            }
        } else if let Some((place, rest)) = placed(trimmed.strip_prefix("vet: ").unwrap_or(trimmed))
        {
            report.problems.push(Problem::new(Some(place), Level::Error, rest));
        }
    }
    report.drop_repeats();
    report
}

/// Whether a line is that of a subtest, which its parent counts.
fn trimmed_is_nested(line: &str) -> bool {
    line.starts_with(' ')
}

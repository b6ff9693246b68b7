//! Runs the attacks: all tests in modules called `attacks`, with many rounds of random cases.

use std::process::Stdio;

use crate::{
    problem::Problem,
    workspace::{Workspace, command_line, not_started},
};

/// The tests' variable for the number of random cases.
const ROUNDS: (&str, &str) = ("TOOLCRIB_ATTACK_ROUNDS", "10000");

const TESTS: [&str; 5] = ["test", "--workspace", "--tests", "--no-fail-fast", "attacks::"];

/// The results of test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    passed: u64,
    failed: u64,
}

/// Prints `N passed, M failed`; fails unless all passed, and if there are none.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Problem> {
    let mut cargo = workspace.cargo(TESTS);
    cargo.env(ROUNDS.0, ROUNDS.1).stderr(Stdio::inherit());
    let line = command_line(&cargo);
    eprintln!("$ {line}");
    let output = cargo.output().map_err(|error| not_started(&line, &error))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let Counted { passed, failed } = counted(&stdout);
    if !output.status.success() {
        eprintln!("{stdout}");
    }
    println!("{passed} passed, {failed} failed");
    match (output.status.success(), passed) {
        (true, 1..) => Ok(()),
        (true, 0) => {
            Err(Problem::new("no attack was run", "name the modules of the attacks `attacks`"))
        }
        (false, _) => Err(Problem::new(
            format!("`{line}` failed: {}", output.status),
            "an attack succeeded, or a build failed: look at the lines above",
        )),
    }
}

/// The sums of the lines `test result: ok. 3 passed; 0 failed; …`.
fn counted(output: &str) -> Counted {
    let mut sums = Counted::default();
    for line in output.lines().filter_map(|line| line.strip_prefix("test result: ")) {
        let number = |name: &str| {
            let part = line.split([';', '.']).find_map(|part| part.trim().strip_suffix(name));
            part.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        sums.passed += number("passed");
        sums.failed += number("failed");
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_all_binaries_are_added() {
        let output = "running 2 tests\ntest result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; \
                      3 filtered out; finished in 0.10s\n\ntest result: FAILED. 1 passed; 2 failed; \
                      0 ignored\n";
        assert_eq!(counted(output), Counted { passed: 13, failed: 2 });
        assert_eq!(counted("error: could not compile"), Counted::default());
    }
}

//! The scenarios that fail today. The list only shrinks: nothing here adds to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use super::{
    COMMAND, MATRIX, REPLICAS,
    results::{Run, Scenario},
};
use crate::{packages::unwritable, problem::Problem, workspace::Workspace};

const FILE: &str = "xtask/conformance/expected-failures.txt";

const HEADER: &str = "\
# Scenarios of the MCP conformance suite that fail, each with its requirement set and the columns that it fails in.
# A run fails at a scenario that fails and is not listed, and at one that is listed and passes: delete its columns then,
# or run `cargo xtask conformance --bless`. Nothing is ever added. A reason after `#` stays with its line.
";

/// The failures by set and scenario.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expected(BTreeMap<(String, String), Failure>);

/// The columns in which a scenario fails, and the reason if it cannot pass.
#[derive(Debug, Default, PartialEq, Eq)]
struct Failure {
    columns: BTreeSet<String>,
    reason: Option<String>,
}

impl Expected {
    pub(crate) fn read(workspace: &Workspace) -> Result<Self, Problem> {
        Ok(Self::parse(&workspace.read(FILE)?))
    }

    fn parse(text: &str) -> Self {
        let mut all: BTreeMap<_, Failure> = BTreeMap::new();
        for line in text.lines() {
            let (line, reason) = match line.split_once('#') {
                Some((line, reason)) => (line, Some(reason.trim().to_owned())),
                None => (line, None),
            };
            let mut words = line.split_whitespace().map(str::to_owned);
            if let (Some(set), Some(scenario)) = (words.next(), words.next()) {
                let failure = all.entry((set, scenario)).or_default();
                failure.columns.extend(words);
                failure.reason = reason;
            }
        }
        Self(all)
    }

    fn has(&self, run: &Run, scenario: &Scenario) -> bool {
        let key = (run.set.clone(), scenario.name.clone());
        // Replicas fail where one gateway does.
        let column = run.column.replace(REPLICAS, "gateway/");
        self.0.get(&key).is_some_and(|failure| failure.columns.contains(&column))
    }

    pub(crate) fn check(&self, runs: &[Run]) -> Result<(), Problem> {
        let mut wrong = Vec::new();
        for run in runs.iter().filter(|run| is_ours(run)) {
            for scenario in &run.scenarios {
                let (set, column, name) = (&run.set, &run.column, &scenario.name);
                match (self.has(run, scenario), scenario.ok) {
                    (false, false) => wrong.push(format!(
                        "{set} {name} fails in {column}: {} of {} checks",
                        scenario.failed,
                        scenario.passed + scenario.failed
                    )),
                    (true, true) if column.starts_with(REPLICAS) => wrong.push(format!(
                        "{set} {name} passes in {column}, and is listed as a failure of one gateway"
                    )),
                    (true, true) => wrong.push(format!(
                        "{set} {name} passes in {column}: delete {column} from its line in {FILE}"
                    )),
                    _ => {}
                }
            }
        }
        for ((set, name), failure) in &self.0 {
            for column in &failure.columns {
                let run = runs.iter().find(|run| run.set == *set && run.column == *column);
                if !MATRIX.contains(&column.as_str())
                    || run.is_some_and(|run| run.scenario(name).is_none())
                {
                    wrong
                        .push(format!("{set} {name} {column} of {FILE} does not exist: delete it"));
                }
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Problem::new(
            wrong.join("\n"),
            format!(
                "fix what fails; `VERBOSE=1 {COMMAND}` prints the suite's output. `{COMMAND} \
                 --bless` deletes what passes"
            ),
        ))
    }

    pub(crate) fn remove_passed(&mut self, runs: &[Run]) {
        for run in runs {
            for scenario in run.scenarios.iter().filter(|scenario| scenario.ok) {
                let key = (run.set.clone(), scenario.name.clone());
                if let Some(failure) = self.0.get_mut(&key) {
                    failure.columns.remove(&run.column);
                }
            }
        }
        self.0.retain(|_, failure| !failure.columns.is_empty());
    }

    pub(crate) fn write(&self, workspace: &Workspace) -> Result<(), Problem> {
        let path = workspace.root().join(FILE);
        fs::write(&path, self.text()).map_err(|error| unwritable(&path, &error))
    }

    fn text(&self) -> String {
        let line = |((set, scenario), failure): (&(String, String), &Failure)| {
            let columns: Vec<_> = failure.columns.iter().map(String::as_str).collect();
            let reason = failure.reason.iter().map(|reason| format!(" # {reason}"));
            format!("{set} {scenario} {}{}\n", columns.join(" "), reason.collect::<String>())
        };
        HEADER.to_owned() + &self.0.iter().map(line).collect::<String>()
    }
}

/// FastMCP's failures are its own matter.
fn is_ours(run: &Run) -> bool {
    !run.column.starts_with("fastmcp/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(column: &str, verdicts: &[(&str, bool)]) -> Run {
        let scenario = |(name, ok): &(&str, bool)| Scenario {
            name: (*name).to_owned(),
            scored: true,
            ok: *ok,
            passed: 1.0,
            failed: f64::from(!ok),
        };
        Run {
            set: "2025-11-25".to_owned(),
            column: column.to_owned(),
            scenarios: verdicts.iter().map(scenario).collect(),
        }
    }

    #[test]
    fn a_run_may_differ_from_the_list_in_neither_direction() {
        let expected = Expected::parse("# why\n2025-11-25 ping gateway/both\n");
        let check = |verdicts| {
            expected.check(&[run("gateway/both", verdicts)]).map_err(|problem| problem.to_string())
        };
        assert_eq!(check(&[("ping", false), ("tools-list", true)]), Ok(()));
        let error = check(&[("ping", false), ("tools-list", false)]).unwrap_err();
        assert!(error.contains("tools-list fails in gateway/both: 1 of 2 checks"), "{error}");
        let error = check(&[("ping", true), ("tools-list", true)]).unwrap_err();
        assert!(error.contains("ping passes in gateway/both: delete"), "{error}");
        let error = check(&[("tools-list", true)]).unwrap_err();
        assert!(error.contains("2025-11-25 ping gateway/both of xtask"), "{error}");
        assert!(expected.check(&[run("replicas/both", &[("ping", false)])]).is_ok());
        assert!(expected.check(&[run("replicas/both", &[("ping", true)])]).is_err());
        assert!(expected.check(&[run("client", &[("ping", false)])]).is_err());
        assert!(Expected::parse("2025-11-25 ping gatway/both").check(&[]).is_err());
        assert!(expected.check(&[run("fastmcp/both", &[("ping", false), ("x", false)])]).is_ok());
    }

    #[test]
    fn a_new_list_lacks_passed_scenarios_and_never_has_new_ones() {
        let text =
            format!("{HEADER}2025-11-25 a client gateway/both # section 4\n2025-11-25 b client\n");
        let mut expected = Expected::parse(&text);
        assert_eq!(expected.text(), text);
        expected.remove_passed(&[run("client", &[("a", true), ("b", true), ("c", false)])]);
        assert_eq!(expected.text(), format!("{HEADER}2025-11-25 a gateway/both # section 4\n"));
    }
}

//! Compares instructions and allocations of the most frequent operations with a baseline, and with a fixed
//! commit; and instructions of operations that may grow with a size: unlike times, they do not depend on
//! the load of the machine.
//!
//! They do depend on the compiler, the processor, valgrind and the dependencies. If one of these
//! differs from the baseline's, the commit of the baseline is built and counted too, and the
//! working tree is compared with that.

mod base;
mod baseline;
mod drift;
mod growth;
mod machine;
mod program;

use std::collections::BTreeMap;

pub(crate) use self::machine::cpus;
use self::{baseline::Baseline, machine::Machine, program::Program};
use crate::{problem::Problem, workspace::Workspace};

/// The counts of one bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    /// The number of operations in one run.
    times: u64,
    /// For all operations together.
    instructions: u64,
    /// For all operations together.
    allocations: u64,
}

/// By the name of the bench.
type Counts = BTreeMap<String, Count>;

/// A difference of more than a fiftieth, 2 %, fails.
const PART: u64 = 50;

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let baseline = Baseline::read(workspace, baseline::FILE)?;
    let others = Machine::here(workspace)?.differences(&baseline.machine);
    let before = if others.is_empty() {
        baseline.counts
    } else {
        eprintln!("the baseline was counted elsewhere, so its commit is counted here as well:");
        others.iter().for_each(|other| eprintln!("  {other}"));
        match base::commit(workspace) {
            Ok(commit) => base::count(workspace, &commit)?,
            Err(problem) => {
                eprintln!("WARNING: that failed: {problem}");
                eprintln!("WARNING: so the comparison uses counts of another machine");
                baseline.counts
            }
        }
    };
    let now = Program::build(workspace)?.count(workspace)?;
    let mut problems = differences(&before, &now);
    problems.extend(drift::unexplained(workspace, &now)?);
    problems.extend(growth::beyond_limits(workspace)?);
    if problems.is_empty() { Ok(()) } else { Err(Problem::new(problems.join("\n"), help())) }
}

pub(crate) fn bless(workspace: &Workspace) -> Result<(), Problem> {
    let machine = Machine::here(workspace)?;
    let counts = Program::build(workspace)?.count(workspace)?;
    counts.iter().for_each(|(name, count)| eprintln!("{}", line(name, *count)));
    Baseline { machine, counts }.write(workspace)
}

fn differences(before: &Counts, now: &Counts) -> Vec<String> {
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    let mut problems: Vec<String> =
        gone.map(|name| format!("{name} is in the baseline, but no bench has this name")).collect();
    for (name, count) in now {
        eprintln!("{}", line(name, *count));
        match before.get(name) {
            Some(before) => problems.extend(changes(name, *before, *count)),
            None => problems.push(format!("{name} is not in the baseline")),
        }
    }
    problems
}

fn help() -> String {
    format!(
        "if a difference is intended, better or worse, run `cargo xtask counts --bless` and say why in the \
         commit; otherwise `callgrind_annotate target/{}/NAME.out` shows the functions that cause it",
        program::FOLDER
    )
}

fn changes(name: &str, before: Count, now: Count) -> Vec<String> {
    if before.times != now.times {
        return vec![format!("{name} runs {} times, was {}", now.times, before.times)];
    }
    [
        ("instructions", before.instructions, now.instructions),
        ("allocations", before.allocations, now.allocations),
    ]
    .into_iter()
    .filter(|(_, before, now)| before.abs_diff(*now).saturating_mul(PART) > *before)
    .map(|(what, before, now)| {
        let percent = 100.0 * (now as f64 / before as f64 - 1.0);
        format!("{name}: {now} {what}, was {before} ({percent:+.1} %)")
    })
    .collect()
}

fn line(name: &str, count: Count) -> String {
    let each = |total: u64| total as f64 / count.times as f64;
    format!(
        "{name:<26} {:>12.0} instructions {:>8.1} allocations",
        each(count.instructions),
        each(count.allocations),
    )
}

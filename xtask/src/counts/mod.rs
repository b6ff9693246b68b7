//! Instructions and allocations of what is done most, held against a baseline: unlike times they
//! come out the same whatever else the machine does.
//!
//! They do depend on the compiler, the processor, valgrind and the dependencies. Where one of these
//! is not what the baseline was counted with, the commit of the baseline is built and counted too,
//! and what is here is held against that.

mod base;
mod baseline;
mod machine;
mod program;

use std::collections::BTreeMap;

pub(crate) use self::machine::cpus;
use self::{baseline::Baseline, machine::Machine, program::Program};
use crate::{problem::Problem, workspace::Workspace};

/// What one bench came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    /// How often the thing is done in one go.
    times: u64,
    /// Of all times together.
    instructions: u64,
    /// Of all times together.
    allocations: u64,
}

/// By the name of the bench.
type Counts = BTreeMap<String, Count>;

/// A difference of more than a fiftieth, 2 %, fails.
const PART: u64 = 50;

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let baseline = Baseline::read(workspace)?;
    let others = Machine::here(workspace)?.differences(&baseline.machine);
    let before = if others.is_empty() {
        baseline.counts
    } else {
        eprintln!("the baseline was counted elsewhere, so its commit is counted here as well:");
        others.iter().for_each(|other| eprintln!("  {other}"));
        match base::commit(workspace) {
            Ok(commit) => base::count(workspace, &commit)?,
            Err(problem) => {
                eprintln!("WARNING: it cannot be: {problem}");
                eprintln!("WARNING: so what is here is held against counts of another machine");
                baseline.counts
            }
        }
    };
    compare(&before, &Program::build(workspace)?.count(workspace)?)
}

pub(crate) fn bless(workspace: &Workspace) -> Result<(), Problem> {
    let machine = Machine::here(workspace)?;
    let counts = Program::build(workspace)?.count(workspace)?;
    counts.iter().for_each(|(name, count)| eprintln!("{}", line(name, *count)));
    Baseline { machine, counts }.write(workspace)
}

fn compare(before: &Counts, now: &Counts) -> Result<(), Problem> {
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    let mut problems: Vec<String> =
        gone.map(|name| format!("{name} is in the baseline, and there is no such bench")).collect();
    for (name, count) in now {
        eprintln!("{}", line(name, *count));
        match before.get(name) {
            Some(before) => problems.extend(changes(name, *before, *count)),
            None => problems.push(format!("{name} is not in the baseline")),
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Problem::new(
        problems.join("\n"),
        format!(
            "where this is meant, better or worse, run `cargo xtask counts --bless` and say why in \
             the commit; where it is not, `callgrind_annotate target/{}/NAME.out` shows what takes them",
            program::FOLDER
        ),
    ))
}

fn changes(name: &str, before: Count, now: Count) -> Vec<String> {
    if before.times != now.times {
        return vec![format!("{name} is done {} times, and was {}", now.times, before.times)];
    }
    [
        ("instructions", before.instructions, now.instructions),
        ("allocations", before.allocations, now.allocations),
    ]
    .into_iter()
    .filter(|(_, before, now)| before.abs_diff(*now).saturating_mul(PART) > *before)
    .map(|(what, before, now)| {
        let percent = 100.0 * (now as f64 / before as f64 - 1.0);
        format!("{name}: {now} {what}, and were {before} ({percent:+.1} %)")
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

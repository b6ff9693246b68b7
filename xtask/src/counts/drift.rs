//! Compares counts with those of a fixed commit: each new baseline permits a small loss, and this finds
//! what they add up to.

use super::{Counts, baseline::Baseline};
use crate::{problem::Problem, workspace::Workspace};

/// The counts of commit 70d7872 of 24 November 2026.
const ORIGIN: &str = "benches/origin.json";

/// The page that gives the reason for a larger drift.
const PAGE: &str = "docs/benchmarks.md";

/// The greatest drift without a reason, in percent.
const LIMIT: f64 = 15.0;

/// How much a drift may exceed the one that the page gives a reason for, in percentage points.
const TOLERANCE: f64 = 2.0;

/// Prints the drift of each bench, and returns those beyond the limit for which the page gives no reason.
pub(super) fn unexplained(workspace: &Workspace, now: &Counts) -> Result<Vec<String>, Problem> {
    let (origin, page) = (Baseline::read(workspace, ORIGIN)?.counts, workspace.read(PAGE)?);
    let mut unexplained = Vec::new();
    eprintln!("the drift since {ORIGIN}:");
    for (name, count) in now {
        let Some(before) = origin.get(name).filter(|before| before.times == count.times) else {
            continue;
        };
        let percent = 100.0 * (count.instructions as f64 / before.instructions as f64 - 1.0);
        eprintln!("{name:<26} {percent:>+11.1} % instructions");
        if percent > explained(&page, name).map_or(LIMIT, |reason| reason + TOLERANCE) {
            unexplained.push(format!(
                "{name}: {percent:+.1} % instructions since {ORIGIN}; above {LIMIT} % the table of drifts \
                 in {PAGE} needs a row with the percentage and the reason"
            ));
        }
    }
    Ok(unexplained)
}

/// The percentage in the page's row of a bench, which begins with its name and the percentage.
fn explained(page: &str, name: &str) -> Option<f64> {
    let row = page.lines().find_map(|line| line.strip_prefix(&format!("| `{name}` |")))?;
    row.split('|').next()?.trim().trim_end_matches('%').trim().parse().ok()
}

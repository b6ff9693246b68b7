//! The table, from the results that the repository keeps.

use std::fs;

use super::{
    plot,
    results::{Counts, Results, percentage},
    systems::{SYSTEMS, System},
};
use crate::{bench, packages::unwritable, problem::Problem, workspace::Workspace};

const PAGE: &str = "docs/crash-table.md";
const PLOT: &str = "docs/crash-table.svg";

/// The ways, with what the page says of each.
const WAYS: [(bool, &str); 2] =
    [(false, "The API repeats an effect"), (true, "The API ignores a repeated key")];

pub(super) fn write(workspace: &Workspace, results: &Results) -> Result<(), Problem> {
    let path = workspace.root().join(PLOT);
    fs::write(&path, plot::of(results)).map_err(|error| unwritable(&path, &error))?;
    let mut found = bench::circumstances(workspace)?;
    for (is_keyed, title) in WAYS {
        found.push_str(&format!(
            "\n### {title}\n\n| system | kills | runs | effects | repeated | most | lost | unknown, said | of \
             them undone | stuck | model calls paid twice | measured |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n"
        ));
        for system in SYSTEMS.iter().filter(|system| system.is_keyed == is_keyed) {
            found.push_str(&row(system, results));
        }
    }
    found.push_str("\n### Settings\n\n| system | its setting |\n|---|---|\n");
    for system in SYSTEMS.iter().filter(|system| !system.is_keyed) {
        found.push_str(&format!("| {} | {} |\n", system.shown, system.setting));
    }
    bench::write(workspace, PAGE, "crash-table", &found)
}

fn row(system: &System, results: &Results) -> String {
    let shown = system.shown;
    let Some((date, counts)) = results.of(system.name) else {
        return format!("| {shown} | – | – | – | – | – | – | – | – | – | – | not measured |\n");
    };
    let Counts { kills, runs, effects, repeated, most, lost, unknown, undone, stuck, .. } = counts;
    let share = percentage(*repeated, *effects);
    format!(
        "| {shown} | {kills} | {runs} | {effects} | {repeated} ({share}) | {most} × | {lost} | {unknown} | {undone} | \
         {stuck} | {} | {date} |\n",
        counts.paid_twice,
    )
}

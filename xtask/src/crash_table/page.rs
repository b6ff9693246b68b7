//! The table, from the results that the repository keeps.

use std::fs;

use super::{
    plot,
    results::{Counts, Results, percentage},
    systems::{SYSTEMS, System},
};
use crate::{bench, packages::unwritable, postgres, problem::Problem, workspace::Workspace};

const PAGE: &str = "docs/crash-table.md";
const PLOT: &str = "docs/crash-table.svg";

/// Has a paragraph with the figures of the rows without keys, which ends so.
const FRONT_PAGE: &str = "README.md";
const REST: &str = "It writes the intent of a call before its effect, so a call that was cut off is not made \
    again: the model learns that its outcome is unknown. Only a tool that is declared `idempotent` or `read_only` \
    is called once more, with the same key. [The table](docs/crash-table.md) has the counts, the objections, each \
    system's way with keys, and the one command that repeats them.";

/// The rows whose names begin so are Toolcrib's.
const OWN: &str = "toolcrib";

/// The ways, with what the page says of each.
const WAYS: [(bool, &str); 2] =
    [(false, "The API repeats an effect"), (true, "The API ignores a repeated key")];

pub(super) fn write(workspace: &Workspace, results: &Results) -> Result<(), Problem> {
    let path = workspace.root().join(PLOT);
    fs::write(&path, plot::of(results)).map_err(|error| unwritable(&path, &error))?;
    let mut found = bench::circumstances(workspace)?;
    found.push_str(&format!("The server of PostgreSQL is `{}`.\n", postgres::version(workspace)?));
    for (is_keyed, title) in WAYS {
        found.push_str(&format!(
            "\n### {title}\n\n| system | kills | runs | effects | repeated | most | lost | unknown, said | of \
             them undone | stuck | model calls paid twice | measured |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n"
        ));
        for system in SYSTEMS.iter().filter(|system| system.is_keyed == is_keyed) {
            found.push_str(&row(system, results));
        }
    }
    found.push_str("\n### Settings\n\n| system | its setting | its key |\n|---|---|---|\n");
    for system in SYSTEMS.iter().filter(|system| !system.is_keyed) {
        found.push_str(&format!("| {} | {} | {} |\n", system.shown, system.setting, system.key));
    }
    bench::write(workspace, PAGE, "crash-table", &found)?;
    bench::write(workspace, FRONT_PAGE, "crash-table", &paragraph(results))
}

/// What the measured rows without keys say, for readers who do not look at the table.
fn paragraph(results: &Results) -> String {
    let rows = || {
        let rows = SYSTEMS.iter().filter(|system| !system.is_keyed);
        rows.filter_map(|system| Some((system, results.of(system.name)?.1)))
    };
    let (own, others): (Vec<_>, Vec<_>) =
        rows().partition(|(system, _)| system.name.starts_with(OWN));
    let share = |counts: &Counts| counts.repeated as f64 * 100.0 / counts.effects.max(1) as f64;
    let shares = || others.iter().map(|(_, counts)| share(counts));
    let (least, most) = (shares().fold(100.0, f64::min), shares().fold(0.0, f64::max));
    let of_own = |figure: fn(&Counts) -> u64| own.iter().map(|(_, counts)| figure(counts)).sum();
    let (repeated, kills): (u64, u64) = (of_own(|own| own.repeated), of_own(|own| own.kills));
    let repeated = if repeated == 0 { "none".to_owned() } else { repeated.to_string() };
    let mut names: Vec<_> =
        others.iter().map(|(system, _)| without_version(system.shown)).collect();
    let last = names.pop().unwrap_or_default();
    format!(
        "Killed at the same points, {} and {last} repeated {least:.0} to {most:.0} % of the effects of an API \
         without idempotency keys, and Toolcrib repeated {repeated} in {kills} kills. {REST}",
        names.join(", ")
    )
}

/// The words before the first that begins with a digit.
fn without_version(shown: &str) -> String {
    let is_word = |word: &&str| !word.starts_with(|first: char| first.is_ascii_digit());
    shown.split(' ').take_while(is_word).collect::<Vec<_>>().join(" ")
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

//! Kills the same loop in Toolcrib and in other systems, which it installs, and writes what happened to
//! the effects into `docs/crash-table.md`.
//!
//! # Layers
//!
//! - `page`: the table, from the results that the repository keeps.
//! - `plot`: the table as a picture.
//! - `kills`: kills the processes of one system, and counts.
//! - `systems`: the systems, and how each is installed and started.
//! - `restate`: Restate's server.
//! - `results`: what was counted, as the repository keeps it.
//! - `worker`: the process that is killed.
//! - `stand_in`: the model, the API with the effects and the person, for all systems.
//! - `watched`: tells a process that waits for something from one that waits for the machine.
//! - `random`: random numbers that are the same for the same seed.

mod kills;
mod page;
mod plot;
mod random;
mod restate;
mod results;
mod stand_in;
mod systems;
mod watched;
mod worker;

use std::env;

use self::{
    results::Results,
    systems::{SYSTEMS, System, TOOLCRIB_RESTATE},
};
use crate::{problem::Problem, workspace::Workspace};

/// The argument that only writes the page.
const ONLY_PAGE: &str = "--page";

/// The variable with another number of kills.
const VARIABLE: &str = "TOOLCRIB_KILLS";

/// The kills of `examples/restate` in `cargo xtask frameworks`.
const KILLS_OF_EXAMPLE: u64 = 4;

/// Measures the rows that the arguments name, or all, and writes each as soon as it is measured.
pub(crate) fn measure(workspace: &Workspace) -> Result<(), Problem> {
    let names: Vec<String> = env::args().skip(2).collect();
    if names == [ONLY_PAGE] {
        return page::write(workspace, &Results::read(workspace)?);
    }
    let is_named = |system: &System| names.iter().any(|name| *name == system.name);
    let known = SYSTEMS.map(|system| system.name);
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let problem = format!("there is no row `{unknown}`");
        return Err(Problem::new(problem, format!("name some of {}", known.join(", "))));
    }
    let tried = env::var(VARIABLE).ok().and_then(|kills| kills.parse().ok());
    for system in SYSTEMS.iter().filter(|system| names.is_empty() || is_named(system)) {
        let counts = kills::count(workspace, system, tried.unwrap_or(system.kills))?;
        println!("{}: {counts:?}", system.name);
        // A shorter run is for the development of a row.
        if tried.is_none() {
            let mut results = Results::read(workspace)?;
            results.replace(workspace, system.name, counts)?;
            page::write(workspace, &results)?;
        }
    }
    Ok(())
}

/// Runs `examples/restate` against a server, and kills it some times.
pub(crate) fn check_example(workspace: &Workspace) -> Result<(), Problem> {
    let system = System { lanes: 1, ..TOOLCRIB_RESTATE };
    let counts = kills::count(workspace, &system, KILLS_OF_EXAMPLE)?;
    match counts.repeated + counts.lost + counts.unapproved + counts.stuck {
        0 => Ok(()),
        _ => Err(Problem::new(
            format!("a killed example repeats, loses or never ends: {counts:?}"),
            "fix examples/restate: newcomers copy it",
        )),
    }
}

//! Kills processes with sessions ten thousand times, and damages their files.

use std::process::Command;

use crate::{
    problem::Problem,
    workspace::{Workspace, run as run_program},
};

/// The tests' variable for their long form.
const LONG: &str = "TOOLCRIB_FULL";

/// The processes that are killed; it prints `N passed, N failed`. Then the torn logs.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Problem> {
    let help = "each failed schedule is printed with its script and its kills: \
                crates/toolcrib-agent/tests/crash/main.rs";
    run_program(
        with_long(&mut workspace.cargo(["test", "-p", "toolcrib-agent", "--test", "crash"])),
        help,
    )?;
    let torn = ["test", "-p", "toolcrib-store", "--test", "store", "torn::"];
    run_program(with_long(&mut workspace.cargo(torn)), "crates/toolcrib-store/tests/store/torn.rs")
}

fn with_long(cargo: &mut Command) -> &mut Command {
    cargo.env(LONG, "1")
}

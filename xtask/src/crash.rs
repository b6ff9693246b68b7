//! Kills workers on a PostgreSQL store, stops its server at once, and cuts connections.

use std::env;

use crate::{
    problem::Problem,
    workspace::{Workspace, run},
};

/// The numbers of sessions and of stops of the server, unless the arguments name others.
const NUMBERS: (&str, &str) = ("10000", "500");

const TEST: [&str; 5] = ["test", "--package", "toolcrib-agent", "--test", "crash"];

const HELP: &str = "a line that begins with FAILED names the session and what happened to it";

pub(crate) fn check(workspace: &Workspace) -> Result<(), Problem> {
    let given: Vec<String> = env::args().skip(2).collect();
    let number = |at: usize, usual| given.get(at).map_or(usual, String::as_str);
    let mut cargo = workspace.cargo(TEST);
    cargo.env("TOOLCRIB_SCHEDULES", number(0, NUMBERS.0));
    cargo.env("TOOLCRIB_STOPS", number(1, NUMBERS.1));
    // Without PostgreSQL, this command has nothing to check.
    cargo.env("CI", "1");
    run(&mut cargo, HELP)
}

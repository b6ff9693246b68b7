//! `cargo xtask`: what is checked before a change is taken in, by one command.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "host crate: it runs programs and talks to whoever started it"
)]

mod cargo_deny;
mod example;
mod links;
mod listed;
mod problem;
mod sizes;
mod steps;
mod workspace;

use std::process::ExitCode;

use crate::{
    steps::{DOCS, EXAMPLE, LINT, TEST},
    workspace::Workspace,
};

const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test      everything that CI checks: lint, tests, each crate alone, docs, and the example
  lint      formatting, file sizes, links, cargo-deny over the dependencies, and clippy
  docs      the API documentation, without warnings
  example   examples/support-desk as its README says, on a copy
  help      this text

All of them look at the whole workspace, stop at the first step that fails, and exit with 1 then.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let steps = match words.as_slice() {
        ["test"] => TEST,
        ["lint"] => LINT,
        ["docs"] => DOCS,
        ["example"] => EXAMPLE,
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        [] => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
        unknown => {
            eprintln!("there is no command `{}`\n\n{HELP}", unknown.join(" "));
            return ExitCode::from(2);
        }
    };
    if steps::run(steps, &Workspace::here()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

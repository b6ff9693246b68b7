//! The command line of Toolcrib.
//!
//! Each command is a thin caller of the same engine: it loads a project, begins a turn, and shows
//! what came of it, for people on a terminal or as one JSON object.
#![allow(
    clippy::disallowed_methods,
    reason = "host crate: it reads and writes what its user names"
)]

mod args;
mod commands;
mod exit;
mod output;
mod signals;

use std::{io, process::ExitCode};

use clap::Parser as _;

use crate::args::Cli;

fn main() -> ExitCode {
    // Before anything else: an interrupt at any moment must end the program in an orderly way.
    let cancellation = match signals::watch() {
        Ok(cancellation) => cancellation,
        Err(error) => return cannot_start("interrupts cannot be watched", &error),
    };
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return cannot_start("the async runtime cannot be started", &error),
    };
    let code = runtime.block_on(commands::dispatch(cli, cancellation));
    // A tool's body that ignores cancellation is left behind, not waited for.
    runtime.shutdown_background();
    code.into()
}

fn cannot_start(what: &str, error: &io::Error) -> ExitCode {
    output::complain(&format!("{what}: {error}"));
    exit::FAILED.into()
}

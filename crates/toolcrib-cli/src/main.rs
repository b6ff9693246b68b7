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

use std::process::ExitCode;

use clap::Parser as _;

use crate::{args::Cli, signals::Signals};

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::complain(&format!("the async runtime cannot be started: {error}"));
            return exit::FAILED.into();
        }
    };
    // Before anything else: an interrupt at any moment must end the program in an orderly way.
    let cancellation = {
        let _context = runtime.enter();
        match Signals::install() {
            Ok(signals) => signals.watch(),
            Err(error) => {
                output::complain(&format!("interrupts cannot be watched: {error}"));
                return exit::FAILED.into();
            }
        }
    };
    let cli = Cli::parse();
    let code = runtime.block_on(commands::dispatch(cli, cancellation));
    // A tool's body that ignores cancellation is left behind, not waited for.
    runtime.shutdown_background();
    code.into()
}

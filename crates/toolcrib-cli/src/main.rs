//! The command line of Toolcrib.
//!
//! Each command is a thin caller of the same engine: it loads a project, begins a turn, and prints
//! the result, for people on a terminal or as one JSON object.
//!
//! # Layers
//!
//! - `commands`: a file for each command.
//! - `host`: the parts that commands share: approver, questions, conversations, stored runs and
//!   lists of servers.
//! - `project`: the loaded project, its engine and its turns.
//! - `otlp`: the export of spans.
//! - `problem`: why a command fails, for people and as JSON.
//! - `output`: everything that is printed.
//! - `args`: the command line.
//! - `clients`: the configuration files of MCP clients.
//! - `trace`: a stored run as iterations, requests and calls.
//! - `signals`: interrupts.
//! - `exit`: the exit codes.
//! - `schema_types`: the names of types in JSON Schemas.
#![allow(
    clippy::disallowed_methods,
    reason = "host crate: it reads and writes what its user names"
)]

mod args;
mod clients;
mod commands;
mod exit;
mod host;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
mod problem;
mod project;
mod schema_types;
mod signals;
mod trace;

use std::{io, process::ExitCode, thread};

use mimalloc::MiMalloc;
use tokio::runtime::{Builder, Runtime};
use toolcrib_core::CancellationToken;

use self::{
    args::Cli,
    exit::Exit,
    problem::{Form, Problem},
};

/// A call through the gateway is hundreds of small allocations, many freed by another thread.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    commands::completions::answer();
    // First of all: an interrupt at any moment must end the program in an orderly way.
    let watching = signals::watch();
    let exit = match Cli::read() {
        Ok(cli) => {
            let form = Form::of(&cli);
            start(cli, watching).unwrap_or_else(|problem| problem.report(form))
        }
        Err(error) => problem::misread(error),
    };
    output::settle(exit).into()
}

fn start(cli: Cli, watching: io::Result<CancellationToken>) -> Result<Exit, Problem> {
    let internal =
        |what: &str, error: &io::Error| Problem::failed("internal", format!("{what}: {error}"));
    let cancellation = watching.map_err(|error| internal("signals cannot be handled", &error))?;
    let runtime =
        runtime().map_err(|error| internal("the async runtime cannot be started", &error))?;
    let outcome = runtime.block_on(commands::dispatch(cli, cancellation));
    #[cfg(feature = "otlp")]
    otlp::flush();
    // A tool body that ignores cancellation is abandoned, not awaited.
    runtime.shutdown_background();
    outcome
}

/// Half of the cores for the async workers: the rest is left to the tools, which are blocking
/// bodies, programs and servers on this machine. Moving a call between cores costs more than it
/// gains when both are busy.
fn runtime() -> io::Result<Runtime> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread().worker_threads((cores / 2).max(1)).enable_all().build()
}

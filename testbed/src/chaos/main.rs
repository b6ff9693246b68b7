//! `chaos-mcp`: an MCP server on standard input and output that breaks one rule, and logs the
//! calls that it executed. It writes raw lines of JSON-RPC, since a library would prevent faults.
//!
//! Its one tool, `echo`, takes an `id` and returns it. With `--log FILE` it appends a line for
//! each event: `start PID`, `list CURSOR`, `call ID`, `cancelled REQUEST`. A call is in
//! the log before anything else is done about it, so two lines `call ID` mean two
//! executions.
#![allow(clippy::disallowed_methods, reason = "host crate: it misbehaves on purpose")]
#![allow(clippy::print_stderr, reason = "it prints its usage")]

mod fault;
mod log;
mod process;
mod serve;
mod wire;

use std::{error::Error, path::PathBuf, process::ExitCode};

use self::{fault::Fault, log::Log};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}\nusage: chaos-mcp [--log FILE] [FAULT]\n\nfaults:\n{}", fault::LIST);
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (mut file, mut fault) = (None, Fault::None);
    while let Some(arg) = args.next() {
        if arg == "--log" {
            file = Some(PathBuf::from(args.next().ok_or("`--log` needs a file")?));
        } else {
            fault = arg.parse()?;
        }
    }
    let log = Log::open(file.as_deref())?;
    log.line(&format!("start {}", std::process::id()));
    match fault {
        Fault::ExitAtStart => {
            eprintln!("the configuration is missing");
            return Ok(ExitCode::FAILURE);
        }
        Fault::Linger => process::linger(),
        Fault::Stay => process::ignore_term()?,
        Fault::Grandchildren => process::daemonise_others(file.as_deref())?,
        Fault::LoudStderr => process::shout(),
        _ => {}
    }
    serve::serve(fault, &log);
    if fault == Fault::Stay {
        process::linger();
    }
    Ok(ExitCode::SUCCESS)
}

//! `cargo xtask`: what is checked before a change is taken in, by one command.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "host crate: it runs programs and talks to whoever started it"
)]

mod bench;
mod cargo_deny;
mod counts;
mod example;
mod gateways;
mod harm;
mod links;
mod listed;
mod local_model;
mod mutants;
mod oracle;
mod packages;
mod peers;
mod problem;
mod sizes;
mod small_examples;
mod steps;
mod unsafe_code;
mod workspace;

use std::process::ExitCode;

use crate::{
    steps::{
        BENCH, BENCH_GATEWAY, BLESS, COUNTS, DOCS, EXAMPLE, HARM, LINT, LOCAL_MODEL, ORACLE, PEERS,
        TEST,
    },
    workspace::Workspace,
};

const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test      everything that CI checks: lint, tests, each crate alone, docs, the example, and counts
  lint      formatting, file sizes, links, cargo-deny over the dependencies, and clippy
  oracle    the model adapters against the vendors' own SDKs, which it installs
  peers     the MCP client and the gateway against servers and clients of others, which it installs
  harm      the tests of faults that were found from outside; fails if a kind of fault has none
  docs      the API documentation, without warnings
  example   what is in examples/: the small programs, and the support desk on a copy
  counts    instructions and allocations, against benches/baseline.json; with --bless they become
            the baseline
  local-model
            the examples on a real, small model, which it installs (190 MB); never part of `test`
  bench     times and memory; writes them into docs/benchmarks.md. Nothing else should run meanwhile
  bench gateway
            the same for `toolcrib serve`, beside gateways of others, which it installs (104 MB)
  mutants MODULE
            whether the crate's tests notice when a module is changed, one place at a time: many
            minutes; docs/mutants.md has the modules and what survived
  help      this text

All of them look at the whole workspace, stop at the first step that fails, and exit with 1 then.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let steps = match words.as_slice() {
        ["test"] => TEST,
        ["lint"] => LINT,
        ["oracle"] => ORACLE,
        ["peers"] => PEERS,
        ["harm"] => HARM,
        ["docs"] => DOCS,
        ["example"] => EXAMPLE,
        ["counts"] => COUNTS,
        ["counts", "--bless"] => BLESS,
        ["local-model"] => LOCAL_MODEL,
        ["bench"] => BENCH,
        ["bench", "gateway"] => BENCH_GATEWAY,
        ["mutants", name] => return mutants::run(&Workspace::here(), name),
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

//! What a hop through `toolcrib serve` costs: the same calls of the same server, direct, through us,
//! through a proxy that is rmcp and nothing else, and through the gateways that others make.
//!
//! This program is all of it but the gateways: the client, and, started by itself with another first
//! argument, the server and the bare proxy. `cargo xtask bench gateway` installs and builds the rest
//! and says in the environment where it lies; without that, what is not there is not measured.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "host crate: it starts programs, dials them, and prints what it finds"
)]

mod chaos;
mod client;
mod echo;
mod figures;
mod gateways;
mod hop;
mod message;
mod pipe;
mod program;
mod report;
mod roles;
mod served;
mod ways;

use std::env;

use toolcrib_benches::{Outcome, print};

const COMMAND: &str = "cargo xtask bench gateway";

fn main() -> Outcome {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Some(role) = roles::asked(&words)? {
        return role.run();
    }
    let rounds = match words.iter().position(|word| *word == "--rounds") {
        Some(at) => words.get(at + 1).ok_or("`--rounds` needs a number")?.parse()?,
        None => report::ROUNDS,
    };
    if rounds == 0 {
        return Err("`--rounds` needs at least 1".into());
    }
    print(&report::tables(rounds)?)
}

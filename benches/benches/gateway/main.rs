//! What a hop through `toolcrib serve` costs: the same calls of the same server, direct, through us,
//! through a proxy that is rmcp and nothing else, and through the gateways that others make.
//!
//! This program is all of it but the gateways: the client, and, started by itself with another first
//! argument, the server and the bare proxy. `cargo xtask bench gateway` installs and builds the rest
//! and says in the environment where it lies; without that, what is not there is not measured.
//!
//! `--rounds N` goes each way so often, and `--ways stateless` only those with that in their name.
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
    let after = |flag: &str| {
        let at = words.iter().position(|word| *word == flag)?;
        Some(words.get(at + 1).copied().ok_or_else(|| format!("`{flag}` needs a value")))
    };
    let rounds = after("--rounds").transpose()?.map_or(Ok(report::ROUNDS), str::parse)?;
    if rounds == 0 {
        return Err("`--rounds` needs at least 1".into());
    }
    print(&report::tables(rounds, after("--ways").transpose()?)?)
}

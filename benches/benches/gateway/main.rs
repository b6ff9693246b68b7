//! Measures a hop through `toolcrib serve`: the same calls of the same server, direct, through it,
//! through a proxy with only rmcp, and through third-party gateways.
//!
//! This program contains all parts except the gateways: the client, and, started by itself with
//! another first argument, the server and the bare proxy. `cargo xtask bench gateway` installs and
//! builds the rest and passes the paths in the environment; missing parts are not measured.
//!
//! `--rounds N` sets the number of rounds, and `--ways stateless` selects the ways with that in
//! their name; `--ways replicas` selects the two gateways with one database. `--soak SECONDS` calls those for so long
//! and measures only their memory.
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
mod replicas;
mod report;
mod roles;
mod served;
mod ways;

use std::{env, time::Duration};

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
    if let Some(time) = after("--soak").transpose()? {
        let time = Duration::from_secs(time.parse()?);
        return print(&replicas::soak(&ways::Setup::find()?, time)?);
    }
    print(&report::tables(rounds, after("--ways").transpose()?)?)
}

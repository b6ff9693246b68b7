//! Measures the overhead of a vendor's API: the loop of `--bench loop`, over loopback HTTP, with
//! the server in the same process and on the same thread.
//!
//! The server answers with prepared bytes. The cost of the server and the system is measured alone,
//! by exchanges of the same size with only hyper; the difference is the adapter's.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "host crate: it dials itself and prints what it finds"
)]

mod client;
mod iteration;
mod plain;
mod request;

use toolcrib_benches::{Outcome, asked, print, vendor::runtime};

const COMMAND: &str = "cargo bench -p toolcrib-benches --bench adapter";

fn main() -> Outcome {
    if let Some(kind) = asked() {
        println!("{}", serde_json::to_string(&iteration::one(&kind)?)?);
        return Ok(());
    }
    let [median, growing] = iteration::tables()?;
    print(&[median, growing, request::table()?, client::table()?])
}

//! What artifacts cost: writing two gigabytes, searching one beside ripgrep, reading ranges of it,
//! and asking a hundred megabytes of JSON.
//!
//! Everything that is measured is a process of its own, so that the most memory it had is its own.
//! The process that was started makes the files, starts one after the other, and deletes the files.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it starts programs, and prints what it finds"
)]

mod beside;
mod contents;
mod figures;
mod role;

use toolcrib_benches::{Outcome, asked, print};

use self::{contents::Place, role::Role};

const COMMAND: &str = "cargo bench -p toolcrib-benches --bench artifacts";

fn main() -> Outcome {
    if let Some(role) = asked() {
        let role: Role = serde_json::from_str(&role)?;
        println!("{}", serde_json::to_string(&role.run()?)?);
        return Ok(());
    }
    beside::there_is_ripgrep()?;
    let place = Place::make()?;
    let written = figures::writing(&place)?;
    place.clear()?;
    contents::write_log(&place)?;
    let (searched, read) = (figures::searches(&place)?, figures::ranges(&place)?);
    place.clear()?;
    contents::write_document(&place)?;
    print(&[searched, read, written, figures::queries(&place)?])
}

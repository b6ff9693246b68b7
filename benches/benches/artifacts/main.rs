//! Measures artifacts: writing two gigabytes, searching one in comparison with ripgrep, reading
//! ranges of it, and querying a hundred megabytes of JSON.
//!
//! Every measurement is a separate process, so that its peak memory is its own. The main process
//! creates the files, starts the others one by one, and deletes the files.
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

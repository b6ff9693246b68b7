//! The process's standard streams, and write errors.

use std::{
    fmt,
    io::{self, Write as _},
};

use parking_lot::Mutex;

use super::{
    print,
    terminal::{self, Stream},
    text::{BAD, safe},
};
use crate::exit::{self, Exit};

/// The first write error of each destination, reported at the end of the program: until then the
/// work continues.
static LOST: Mutex<Vec<(String, io::Error)>> = Mutex::new(Vec::new());

/// Prints a line to standard output.
pub(super) fn say(line: fmt::Arguments<'_>) {
    terminal::line(Stream::Out, line);
}

/// Prints a line to standard error. A failure there cannot be reported.
pub(super) fn note(line: fmt::Arguments<'_>) {
    terminal::line(Stream::Err, line);
}

/// Prints text unchanged to standard output.
pub(super) fn print(text: &str) {
    delivered(writeln!(io::stdout(), "{text}"));
}

/// Prints the text of a file unchanged.
pub(crate) fn raw(text: &[u8]) {
    delivered(io::stdout().write_all(text));
}

/// Records the result of a write to standard output. A closed pipe is not a failure.
pub(super) fn delivered(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        lost("standard output", error);
    }
}

/// Records that a destination could not be written; [`settle`] reports it.
pub(crate) fn lost(place: impl Into<String>, error: io::Error) {
    let place = place.into();
    let mut lost = LOST.lock();
    if !lost.iter().any(|(known, _)| *known == place) {
        lost.push((place, error));
    }
}

/// Reports the recorded write errors, which turn success into failure.
pub(crate) fn settle(exit: Exit) -> Exit {
    let lost = std::mem::take(&mut *LOST.lock());
    for (place, error) in &lost {
        complain(&format!("{} could not be written: {error}", safe(place)));
    }
    if lost.is_empty() || exit != exit::FINE { exit } else { exit::FAILED }
}

/// Prints an error.
pub(crate) fn complain(message: &str) {
    print::note!("{BAD}error{BAD:#}: {}", safe(message));
}

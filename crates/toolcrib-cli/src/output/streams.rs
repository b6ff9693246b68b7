//! The streams of the process, and what could not be written.

use std::{
    fmt,
    io::{self, Write as _},
    sync::{Mutex, PoisonError},
};

use super::{complain, text::safe};
use crate::exit::{self, Exit};

/// The first error of each place that was to be written, for the end of the program: until then
/// the work goes on.
static LOST: Mutex<Vec<(String, io::Error)>> = Mutex::new(Vec::new());

/// Prints a line to standard output.
pub(super) fn say(line: fmt::Arguments<'_>) {
    delivered(writeln!(anstream::stdout(), "{line}"));
}

/// Prints a line to standard error. What cannot be said there can be said nowhere.
pub(super) fn note(line: fmt::Arguments<'_>) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Prints text as it is to standard output.
pub(super) fn print(text: &str) {
    delivered(writeln!(io::stdout(), "{text}"));
}

/// Takes note of how writing to standard output went. Whoever closed it wants no more: that is no
/// failure.
pub(crate) fn delivered(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        lost("standard output", error);
    }
}

/// Takes note that something could not be written; [`settle`] tells.
pub(crate) fn lost(place: impl Into<String>, error: io::Error) {
    let place = place.into();
    let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
    if !lost.iter().any(|(known, _)| *known == place) {
        lost.push((place, error));
    }
}

/// Says what was lost on the way. What would have been fine has failed then.
pub(crate) fn settle(exit: Exit) -> Exit {
    let lost = std::mem::take(&mut *LOST.lock().unwrap_or_else(PoisonError::into_inner));
    for (place, error) in &lost {
        complain(&format!("{} could not be written: {error}", safe(place)));
    }
    if lost.is_empty() || exit != exit::FINE { exit } else { exit::FAILED }
}

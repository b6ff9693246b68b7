//! The value of a secret that the user stores, from the terminal or standard input.

use std::io;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use toolcrib_core::CancellationToken;
use toolcrib_engine::Redactor;

use super::call_arguments::read_stdin;
use crate::{
    output,
    problem::Problem,
    project::load::{blocking, unless_cancelled},
};

/// The longest line that a terminal passes on, in bytes.
const MOST_BYTES: usize = 4095;

/// The text of standard input, without its last line end.
pub(crate) async fn from_stdin(cancellation: &CancellationToken) -> Result<String, Problem> {
    let text = read_stdin(cancellation).await?;
    let line = text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text));
    Ok(line.unwrap_or(&text).to_owned())
}

/// Asks at the terminal, which does not show the answer.
pub(crate) async fn prompt(
    prompt: String,
    cancellation: &CancellationToken,
) -> Result<String, Problem> {
    // First: an answer that is pasted right after the question must not be shown.
    let hidden = Hidden::begin().map_err(failed)?;
    let answer = line(prompt, cancellation).await;
    drop(hidden);
    answer
}

/// Asks at the terminal for a line.
pub(crate) async fn line(
    prompt: String,
    cancellation: &CancellationToken,
) -> Result<String, Problem> {
    let reading = blocking(move || output::ask_line(&prompt));
    let line = unless_cancelled(reading, cancellation).await??.map_err(failed)?;
    match line.len() >= MOST_BYTES {
        true => Err(Problem::usage(
            "a terminal cuts off a line of more than 4,094 bytes; use standard input",
        )),
        false => Ok(line.trim_end_matches(['\n', '\r']).to_owned()),
    }
}

/// The terminal without an echo of what is typed, until this is dropped.
struct Hidden(Termios);

impl Hidden {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // The end of the line is shown.
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A terminal that is gone needs none.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Refuses a value that could not be redacted. `what` is its source, for the message.
pub(crate) fn check(value: &str, what: &str) -> Result<(), Problem> {
    if value.is_empty() {
        return Err(Problem::usage(format!("{what} is empty")));
    }
    let learned = Redactor::default().learn(value);
    learned.map_err(|_| {
        Problem::usage(format!("{what} has fewer than 4 characters, which cannot be redacted"))
    })
}

fn failed(error: impl std::fmt::Display) -> Problem {
    Problem::failed("terminal_failed", format!("the terminal: {error}"))
}

//! The value of a secret that the user stores, from the terminal or standard input.

use std::io;

use toolcrib_core::CancellationToken;
use toolcrib_engine::Redactor;

use super::call_arguments::read_stdin;
use crate::{
    problem::Problem,
    project::load::{blocking, unless_cancelled},
};

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
    let reading = blocking(move || rpassword::prompt_password(prompt));
    unless_cancelled(reading, cancellation).await??.map_err(failed)
}

/// Refuses a value that could not be redacted.
pub(crate) fn check(value: &str) -> Result<(), Problem> {
    let learned = Redactor::default().learn(value);
    learned.map_err(|_| Problem::usage("a secret has at least 4 characters"))
}

#[expect(clippy::needless_pass_by_value, reason = "a function for `map_err`")]
pub(crate) fn failed(error: io::Error) -> Problem {
    Problem::failed("terminal_failed", format!("the terminal: {error}"))
}

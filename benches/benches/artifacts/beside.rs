//! ripgrep, for comparison with our search.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use toolcrib_benches::{Outcome, micros};

const PROGRAM: &str = "rg";

/// # Errors
/// If it is missing; the text says how to install it.
pub(crate) fn there_is_ripgrep() -> Outcome {
    let version = Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).status();
    match version {
        Ok(status) if status.success() => Ok(()),
        _ => Err("searches are measured beside ripgrep, and `rg` is not on the PATH; install it \
                  with `cargo install ripgrep --locked`, or as the package `ripgrep` of the system"
            .into()),
    }
}

/// The time of a search in a file, with line numbers, in microseconds, and the number of lines
/// found. Includes the start of the process, a few milliseconds.
pub(crate) fn ripgrep(file: &Path, pattern: &str, flags: &str) -> Outcome<(f64, usize)> {
    let mut command = Command::new(PROGRAM);
    command.args(["--no-config", "--color=never", "--line-number", "--text"]);
    if flags.contains('i') {
        command.arg("--ignore-case");
    }
    command.args(["--regexp", pattern]).arg(file);
    let began = Instant::now();
    let output = command.output()?;
    let time = micros(began.elapsed());
    // 1 means no match.
    if !matches!(output.status.code(), Some(0 | 1)) {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("ripgrep: {said}").into());
    }
    Ok((time, output.stdout.iter().filter(|byte| **byte == b'\n').count()))
}

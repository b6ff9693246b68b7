//! Faults of the process itself, before and after it serves.

use std::{
    env, fs,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// Set in the process that [`ignore_term`] restarts.
const IGNORES: &str = "CHAOS_IGNORES_TERM";

/// Runs until it is killed, or long enough to be noticed.
pub(crate) fn linger() {
    thread::sleep(Duration::from_secs(600));
}

/// Restarts this program through a shell that ignores SIGTERM, which is inherited.
pub(crate) fn ignore_term() -> io::Result<()> {
    if env::var_os(IGNORES).is_some() {
        return Ok(());
    }
    Err(Command::new("sh")
        .args(["-c", "trap '' TERM; exec \"$@\"", "sh"])
        .arg(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env(IGNORES, "1")
        .exec())
}

/// Leaves two processes in a separate session and without a parent here. They have written to the log
/// then: the server's end may end them too.
pub(crate) fn daemonise_others(log: Option<&Path>) -> io::Result<()> {
    let started = || {
        let log = log.and_then(|log| fs::read_to_string(log).ok()).unwrap_or_default();
        log.lines().filter(|line| line.starts_with("start ")).count()
    };
    let before = started();
    for _ in 0..2 {
        let mut command = Command::new("setsid");
        command.arg("--fork").arg(env::current_exe()?).arg("linger");
        if let Some(log) = log {
            command.arg("--log").arg(log);
        }
        if !command.status()?.success() {
            return Err(io::Error::other("setsid failed"));
        }
    }
    let began = Instant::now();
    while log.is_some() && started() < before + 2 && began.elapsed() < Duration::from_secs(300) {
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Writes 100 MB to standard error.
pub(crate) fn shout() {
    let line = [b'e'; 1_000_000];
    for _ in 0..100 {
        if io::stderr().write_all(&line).is_err() {
            return;
        }
    }
}

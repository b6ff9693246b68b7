//! Visible skips of tests, for all crates: without dependencies, so that it costs no build.

use std::{
    env,
    fmt::Display,
    io::{self, Write as _},
    thread,
};

/// Reports that the current test returns early because the machine lacks something, as the line
/// `skipped: TEST: REASON` on stderr. `cargo xtask test` lists these lines at its end.
///
/// ```no_run
/// # fn has_perl() -> bool { true }
/// fn a_socket_is_refused() {
///     if !has_perl() {
///         return toolcrib_skip::skip("perl is not installed");
///     }
/// }
/// ```
///
/// # Panics
/// Where the variable `CI` is set and not empty: there, no test may be skipped.
#[track_caller]
#[expect(clippy::panic, reason = "for tests")]
pub fn skip(reason: impl Display) {
    let thread = thread::current();
    let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or("a test"));
    if env::var_os("CI").is_some_and(|ci| !ci.is_empty()) {
        panic!("{line}where `CI` is set, no test may be skipped");
    }
    // The test harness keeps the output of `eprint`, and shows it only if the test fails.
    let _ = io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::{env, process::Command};

    use super::skip;

    /// Run by the next test only.
    #[test]
    fn lacks_a_thing() {
        if env::var_os("TOOLCRIB_TEST_LACKS_A_THING").is_some() {
            skip("no thing");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it runs itself")]
    fn a_skip_is_seen_although_the_test_passes_and_fails_in_ci() {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "tests::lacks_a_thing", "--test-threads=2"]);
        command.env("TOOLCRIB_TEST_LACKS_A_THING", "1").env("CI", "");
        let skipped = command.output().unwrap();
        assert!(skipped.status.success());
        let line = "skipped: tests::lacks_a_thing: no thing\n";
        assert_eq!(String::from_utf8_lossy(&skipped.stderr), line);

        let failed = command.env("CI", "true").output().unwrap();
        assert!(!failed.status.success());
        let output = String::from_utf8_lossy(&failed.stdout);
        assert!(output.contains(line), "{output}");
    }
}

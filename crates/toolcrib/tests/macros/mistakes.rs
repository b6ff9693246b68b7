//! Errors of `#[tool]` are compiler errors at the place of the mistake.
//!
//! `TRYBUILD=overwrite cargo test -p toolcrib --test macros -- --ignored` records the current messages.

#![allow(clippy::disallowed_methods, reason = "tests")]

use std::{env, process::Command};

#[test]
#[ignore = "`cargo xtask full` runs it: trybuild builds all dependencies in a separate folder"]
fn mistakes_are_compile_errors() {
    // All fail, so trybuild checks all files in one run of cargo.
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/declaration.rs");
    cases.compile_fail("tests/ui/options.rs");
    cases.compile_fail("tests/ui/parameters.rs");
    // These messages come from rustc, and differ between versions.
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().unwrap().stdout;
    let ours = concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"), ".");
    if version.starts_with(ours.as_bytes()) {
        cases.compile_fail("tests/ui/types.rs");
    }
}

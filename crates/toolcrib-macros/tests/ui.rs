//! A mistake under `#[tool]` is an error of the compiler at the place of the mistake.
//!
//! `TRYBUILD=overwrite cargo test -p toolcrib-macros` writes down what is said now.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::process::Command;

#[test]
fn mistakes() {
    // All fail, so trybuild gives all files to one run of cargo.
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/declaration.rs");
    cases.compile_fail("tests/ui/options.rs");
    cases.compile_fail("tests/ui/parameters.rs");
    // Here rustc speaks, and another one speaks otherwise.
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().unwrap().stdout;
    let ours = concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"), ".");
    if version.starts_with(ours.as_bytes()) {
        cases.compile_fail("tests/ui/types.rs");
    }
}

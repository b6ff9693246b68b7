//! The client with published third-party servers. `cargo xtask peers` installs them, and prints
//! their paths.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests")]

mod everything;
mod npm;
mod python;
mod support;

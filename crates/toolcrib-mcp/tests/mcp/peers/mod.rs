//! The client in front of servers of others, as they are published. `cargo xtask peers` installs
//! them, and says where they are.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests")]

mod everything;
mod npm;
mod python;
mod support;

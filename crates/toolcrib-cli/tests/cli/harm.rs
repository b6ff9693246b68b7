//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod false_claims;
mod faults;
mod narrowing_files;
mod registry_and_names_remote;
mod remote_progress;
mod small_holes_remote;

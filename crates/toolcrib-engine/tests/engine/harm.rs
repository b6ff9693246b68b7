//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod false_claims;
mod one_bad_server;
mod remote_progress;
mod skill_door;

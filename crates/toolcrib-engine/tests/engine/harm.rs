//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod one_bad_server;
mod skill_door;

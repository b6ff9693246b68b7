//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod skill_door;
mod small_holes_answers;

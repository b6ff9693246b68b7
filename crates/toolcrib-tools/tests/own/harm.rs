//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod small_holes_memory;

//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod database_roles;
mod database_values;

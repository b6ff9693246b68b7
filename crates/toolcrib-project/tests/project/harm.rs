//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod bounded_work;
mod fresh_data;
mod one_json;
mod small_holes_files;
mod trust;
mod upstream_sessions;

//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod executor_offers;
mod null_arguments;
mod one_json;
mod registry_and_names;

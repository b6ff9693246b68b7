//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod bounded_work;
mod executor_offers;
mod false_claims;
mod null_arguments;
mod one_bad_server;
mod one_json;
mod origin_names;
mod registry_and_names;
mod remote_progress;
mod secret_spellings;
mod skill_door;
mod small_holes_text;
mod terminal_words;

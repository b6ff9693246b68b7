//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod allow_origin;
mod answered_calls;
mod false_claims_gateway;
mod one_bad_server;
mod served;
mod skill_door;
mod small_holes_gateway;
mod terminal_words;
mod terminal_words_servers;
mod upstream_sessions;

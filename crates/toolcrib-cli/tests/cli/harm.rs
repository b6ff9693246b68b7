//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod answered_calls;
mod one_bad_server;
mod terminal_words_servers;
mod upstream_sessions;

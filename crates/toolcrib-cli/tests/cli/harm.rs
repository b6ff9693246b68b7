//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod allow_origin;
mod answered_calls;
mod definition_secrets;
mod documents;
mod false_claims;
mod false_claims_gateway;
mod faults;
mod fresh_data;
mod narrowing_files;
mod null_arguments;
mod one_bad_server;
mod one_json;
mod origin_names;
mod process_limits;
mod registry_and_names_remote;
mod remote_progress;
mod secret_spellings;
mod served;
mod skill_door;
mod small_holes_gateway;
mod small_holes_remote;
mod terminal_words;
mod terminal_words_servers;
mod trust;
mod untrusted_definitions;
mod upstream_sessions;

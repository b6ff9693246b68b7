//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod allow_origin;
mod answered_calls;
mod cached_lists;
mod definition_secrets;
mod dialed_hosts;
mod documents;
mod documents_read_in_part;
mod false_claims;
mod false_claims_gateway;
mod faults;
mod fresh_data;
mod full_disk {
    mod attacks;
}
mod narrowing_files;
mod new_tools {
    mod attacks;
}
mod null_arguments;
mod one_bad_server;
mod one_json;
mod origin_names;
mod path_segments;
mod process_limits;
mod registry_and_names_remote;
mod remote_progress;
mod rewritten_calls;
mod secret_spellings;
mod served;
mod silent_tools;
mod skill_door;
mod small_holes_acp;
mod small_holes_approvals;
mod small_holes_gateway;
mod small_holes_remote;
mod terminal_words;
mod terminal_words_servers;
mod trust;
mod unreadable_skills;
mod untrusted_definitions;
mod upstream_sessions;
mod without_session {
    mod attacks;
}

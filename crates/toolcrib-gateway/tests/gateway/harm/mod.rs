//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod one_json;
mod sessions_under_pressure {
    mod attacks;
}
mod without_session {
    mod attacks;
    mod personalities;
}

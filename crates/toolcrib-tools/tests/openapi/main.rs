//! Tools from OpenAPI documents.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    missing_docs,
    reason = "tests"
)]

mod building;
mod calling;
mod published;
mod sample;
mod server;

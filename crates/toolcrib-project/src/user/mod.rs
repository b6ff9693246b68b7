//! The files of the user, as opposed to those of the project: trust, lock, state and tokens.

pub(crate) mod approvals;
pub(crate) mod lock;
pub(crate) mod models;
pub(crate) mod options;
pub(crate) mod own_store;
pub(crate) mod secrets;
pub(crate) mod server_log;
pub(crate) mod sessions;
pub(crate) mod shared_tokens;
pub(crate) mod state;
pub(crate) mod tokens;
pub(crate) mod trust;

//! The files of the user, as opposed to those of the project: trust, lock, vault, state and tokens.

pub(crate) mod approvals;
pub(crate) mod lock;
pub(crate) mod models;
pub(crate) mod options;
pub(crate) mod own_store;
pub(crate) mod private;
pub(crate) mod secrets;
pub(crate) mod server_log;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod tokens;
pub(crate) mod trust;
pub(crate) mod vault;

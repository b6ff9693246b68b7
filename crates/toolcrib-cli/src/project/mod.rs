//! The project of a command: its loading, its engine and its turns.

pub(crate) mod consent;
pub(crate) mod document;
pub(crate) mod load;
pub(crate) mod own_edit;
pub(crate) mod scratch;
pub(crate) mod slow_servers;
pub(crate) mod turn;

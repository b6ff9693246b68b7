//! The names of a project: their declarations, and what refers to them.

pub(crate) mod addresses;
pub(crate) mod alternatives;
pub(crate) mod grant;
pub(crate) mod located;
pub(crate) mod mcp_files;
pub(crate) mod names;
pub(crate) mod part;
pub(crate) mod part_names;
pub(crate) mod remote;
pub(crate) mod sandbox;

//! The texts of a project, each read once, and never from outside of its folder.

pub(crate) mod find;
pub(crate) mod open;
pub(crate) mod owner;
pub(crate) mod reads;
pub(crate) mod root;
pub(crate) mod skills;
pub(crate) mod system;
pub(crate) mod text_file;

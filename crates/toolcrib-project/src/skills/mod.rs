//! Skills that may change while they are used, and their installation.

pub(crate) mod install;
pub(crate) mod watched;

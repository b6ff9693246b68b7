//! Language models for Toolcrib: implementations of [`toolcrib_core::Model`].
//!
//! [`ScriptedModel`] answers by rules that stand in a TOML file. It needs no key and no network,
//! and the same conversation gives the same answer, which makes it the model of examples and
//! tests.

mod script;

pub use toolcrib_config::{Diagnostic, Diagnostics, Severity};

pub use self::script::{ScriptedModel, record};

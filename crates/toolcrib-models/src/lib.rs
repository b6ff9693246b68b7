//! Language models for Toolcrib: implementations of [`toolcrib_core::Model`].
//!
//! [`ScriptedModel`] answers by rules that stand in a TOML file. It needs no key and no network,
//! and the same conversation gives the same answer, which makes it the model of examples and
//! tests.

mod script;
#[cfg(feature = "vendors")]
mod vendors;

pub use toolcrib_config::{Diagnostic, Diagnostics, Severity};

pub use self::script::{ScriptedModel, record};
#[cfg(feature = "vendors")]
pub use self::vendors::{
    DEFAULT_IDLE_TIMEOUT, DEFAULT_TIMEOUT, InvalidBaseUrl, InvalidVendorModel, ModelName,
    NotConfigured, ReasoningEffort, UnknownVendor, Vendor, VendorModel, VendorModelBuilder,
};

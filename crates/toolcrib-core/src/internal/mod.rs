//! Helpers that several modules need.

pub(crate) mod chance;
pub(crate) mod counted;
pub(crate) mod debug_fields;
pub(crate) mod lanes;
pub(crate) mod lru_cache;
pub(crate) mod panic_text;
pub(crate) mod progress_pace;
pub(crate) mod single_flight;

pub(crate) use self::debug_fields::debug_fields;
pub use self::lanes::Lanes;

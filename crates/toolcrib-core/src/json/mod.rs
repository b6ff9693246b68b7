//! JSON values: their limits, their digests, and texts about them.

pub(crate) mod depth;
pub(crate) mod digest;
pub(crate) mod subschemas;
pub(crate) mod value;
pub(crate) mod wide_integers;

pub use self::wide_integers::changes_integers;

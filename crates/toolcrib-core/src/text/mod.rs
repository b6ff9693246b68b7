//! Texts: fences, invisible characters, suggestions.

pub(crate) mod fence;
pub(crate) mod hidden;
pub(crate) mod shortened;
pub(crate) mod suggest;

pub use self::fence::{FENCE_NOTICE, fence, unfence};

//! Chance, for what must not happen everywhere at once.

use std::hash::{BuildHasher as _, RandomState};

/// From 0 to 1, by chance. No secret may hang on it: chance is all that is asked of it, so the keys of
/// the standard library's hasher do.
pub fn random_share() -> f64 {
    let chance = RandomState::new().hash_one(()) >> 32;
    f64::from(u32::try_from(chance).unwrap_or(0)) / f64::from(u32::MAX)
}

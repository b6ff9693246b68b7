//! Random numbers for jitter.

use std::hash::{BuildHasher as _, RandomState};

/// A random number in [0, 1]. Not cryptographic: it uses the random keys of the standard library's
/// hasher.
pub fn random_share() -> f64 {
    let chance = RandomState::new().hash_one(()) >> 32;
    f64::from(u32::try_from(chance).unwrap_or(0)) / f64::from(u32::MAX)
}

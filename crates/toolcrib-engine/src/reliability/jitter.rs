use std::hash::{BuildHasher as _, RandomState};

/// From 0 to 1. Chance is all that is asked of it, so the keys of the standard library's hasher do.
pub(super) fn random_share() -> f64 {
    f64::from(RandomState::new().hash_one(()) as u32) / f64::from(u32::MAX)
}

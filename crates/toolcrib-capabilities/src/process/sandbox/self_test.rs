//! The proof that a tier denies its acts on this machine: a child process in the tier tries them.

use super::SandboxTier;
use crate::process::UnsupportedError;

/// An act that was tried in a tier.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The act, such as `read a hidden file`.
    pub act: &'static str,
    /// Whether the tier must deny it. The others must succeed: a sandbox that permits nothing is of
    /// no use.
    pub must_fail: bool,
    /// The system's answer.
    pub outcome: Result<(), String>,
    /// Whether this is the required outcome.
    pub is_as_required: bool,
}

/// The result of a tier's self-test.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelfTest {
    /// The tier.
    pub tier: SandboxTier,
    /// The acts, in the order of the attempts; empty if the tier could not be entered.
    pub attempts: Vec<Attempt>,
    /// Whether this machine enforces the tier, else the missing feature and how to get it.
    pub verdict: Result<(), UnsupportedError>,
}

/// Tests a tier on this machine: a child process enters it and tries forbidden acts, each of which
/// must be denied. Once per process and tier; blocks for some milliseconds then.
pub fn self_test(tier: SandboxTier) -> &'static SelfTest {
    #[cfg(all(target_os = "linux", not(portable)))]
    return super::proof::self_test(tier);
    #[cfg(not(all(target_os = "linux", not(portable))))]
    return super::unsupported::self_test(tier);
}

/// Whether this machine enforces a tier, as its [`self_test`] has shown.
///
/// # Errors
/// The missing feature, and how to get it. Programs of this tier are not started.
pub fn sandbox_support(tier: SandboxTier) -> Result<(), UnsupportedError> {
    self_test(tier).verdict.clone()
}

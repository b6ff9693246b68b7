//! For systems without Landlock and namespaces, and portable builds.

use std::sync::OnceLock;

use super::{SandboxTier, SelfTest};
use crate::process::{UnsupportedError, support};

/// Nothing is tried: no tier above `none` exists here, or only those that [`support`] knows.
pub(super) fn self_test(tier: SandboxTier) -> &'static SelfTest {
    static TESTS: [OnceLock<SelfTest>; SandboxTier::ALL.len()] =
        [const { OnceLock::new() }; SandboxTier::ALL.len()];
    static NONE: SelfTest =
        SelfTest { tier: SandboxTier::None, attempts: Vec::new(), verdict: Ok(()) };
    let verdict = || match tier {
        SandboxTier::None if cfg!(portable) => support(),
        SandboxTier::None => Ok(()),
        SandboxTier::Tree => support(),
        SandboxTier::Files | SandboxTier::Full => Err(refused(tier)),
    };
    TESTS.get(tier as usize).map_or(&NONE, |test| {
        test.get_or_init(|| SelfTest { tier, attempts: Vec::new(), verdict: verdict() })
    })
}

/// Why no tier above [`SandboxTier::Tree`] exists here.
fn refused(tier: SandboxTier) -> UnsupportedError {
    let why = if cfg!(portable) {
        "this build is portable; build without `--cfg portable`, on Linux"
    } else {
        "it needs Landlock and namespaces, which only Linux has"
    };
    UnsupportedError::new(format!("the sandbox `{tier}` is not possible here: {why}"))
}

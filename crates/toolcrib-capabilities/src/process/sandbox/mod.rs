//! Sandboxes of programs: their tiers, and the folders and hosts that a program may use.

#[cfg(all(target_os = "linux", not(portable)))]
mod environment;
#[cfg(all(target_os = "linux", not(portable)))]
mod filter;
#[cfg(all(target_os = "linux", not(portable)))]
mod folders;
#[cfg(all(target_os = "linux", not(portable)))]
mod prepare;
#[cfg(all(target_os = "linux", not(portable)))]
mod proof;
#[cfg(all(target_os = "linux", not(portable)))]
mod rules;
mod self_test;
mod tier;
#[cfg(not(all(target_os = "linux", not(portable))))]
mod unsupported;

use std::path::{Path, PathBuf};

#[cfg(all(target_os = "linux", not(portable)))]
pub(super) use self::{
    environment::environment,
    prepare::{Prepared, prepare},
};
pub use self::{
    self_test::{Attempt, SelfTest, sandbox_support, self_test},
    tier::{SandboxTier, UnknownTierError},
};
#[cfg(feature = "http")]
use crate::http::EgressProxy;

/// The sandbox of a program. Begin with [`SandboxTier::into`] or the default, the tier
/// [`Tree`](SandboxTier::Tree), and set fields.
///
/// Folders are absolute and contain no symlink: a folder that became a symlink is refused at the
/// start, so that no program redirects the access of a later one. [`Path::canonicalize`] resolves
/// them. The tiers below [`Files`](SandboxTier::Files) ignore them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Sandbox {
    /// The tier.
    pub tier: SandboxTier,
    /// Folders and files that the program may read and execute, besides those of the system and its
    /// working folder.
    pub read: Vec<PathBuf>,
    /// Folders and files that it may also change.
    pub write: Vec<PathBuf>,
    /// Folders and files that it never reads, even inside a folder that it may read: state and keys
    /// of the host. They need not exist. A writable folder that contains one is refused.
    pub hidden: Vec<PathBuf>,
    /// The tier [`Full`](SandboxTier::Full): the proxy to the hosts that it may reach. `None`, the
    /// default, is no network.
    #[cfg(feature = "http")]
    pub network: Option<EgressProxy>,
}

impl From<SandboxTier> for Sandbox {
    fn from(tier: SandboxTier) -> Self {
        Self { tier, ..Self::default() }
    }
}

impl Sandbox {
    /// The first hidden path that a writable folder contains, with this folder. Such a sandbox is
    /// refused at the start: no rule could protect the hidden path.
    pub fn hidden_in_writable(&self) -> Option<(&Path, &Path)> {
        self.write.iter().find_map(|folder| {
            let hidden = self.hidden.iter().find(|hidden| hidden.starts_with(folder))?;
            Some((folder.as_path(), hidden.as_path()))
        })
    }
}

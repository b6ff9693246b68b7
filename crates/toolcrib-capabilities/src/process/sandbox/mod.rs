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

use std::{
    error::Error,
    path::{Path, PathBuf},
};

use toolcrib_core::NetworkRules;

#[cfg(all(target_os = "linux", not(portable)))]
pub(super) use self::{
    environment::environment,
    prepare::{PreparedSandbox, prepare},
};
pub use self::{
    self_test::{Attempt, SelfTest, sandbox_support, self_test},
    tier::{SandboxTier, UnknownTierError},
};
#[cfg(feature = "http")]
use crate::http::EgressProxy;

/// The sandbox of a program. Begin with a [`SandboxTier`], by `into`, or the default, the tier
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
    /// Where files go that the program makes, and that would run or steer code when a person opens a
    /// folder that it may change, enters it, or uses version control in it: hooks, start-up files of
    /// shells and editors, settings of agents, CI workflows. Existing ones are read-only for the
    /// program. New ones are moved when it has ended, and reported as
    /// [`ProcessOutput::moved`](super::ProcessOutput::moved). Without a folder, or if it is on
    /// another file system, they are renamed where they are.
    pub trash: Option<PathBuf>,
    /// The tier [`Full`](SandboxTier::Full): the proxy to the hosts that it may reach. None by
    /// default: the program has no network.
    #[cfg(feature = "http")]
    pub network: Option<EgressProxy>,
}

impl From<SandboxTier> for Sandbox {
    fn from(tier: SandboxTier) -> Self {
        Self { tier, ..Self::default() }
    }
}

impl Sandbox {
    /// A declared path that conflicts with a hidden one, and the hidden one: a path inside it, or a
    /// writable folder around it, in which no rule could protect it. Such a sandbox is refused at the
    /// start.
    pub fn conflict(&self) -> Option<(&Path, &Path)> {
        self.hidden.iter().find_map(|hidden| {
            let real = resolved(hidden);
            let is_inside = |path: &&PathBuf| path.starts_with(&real);
            let inside = self.read.iter().chain(&self.write).find(is_inside);
            let around = || self.write.iter().find(|path| real.starts_with(path));
            Some((inside.or_else(around)?.as_path(), hidden.as_path()))
        })
    }

    /// The same sandbox, whose network is restricted by these rules.
    ///
    /// # Errors
    /// An invalid host pattern in the rules: then the program may not run.
    pub fn within(&self, rules: &NetworkRules) -> Result<Self, Box<dyn Error + Send + Sync>> {
        #[cfg(feature = "http")]
        if let Some(network) = &self.network
            && !rules.is_open()
        {
            return Ok(Self { network: Some(network.within(rules)?), ..self.clone() });
        }
        #[cfg(not(feature = "http"))]
        let _ = rules;
        Ok(self.clone())
    }
}

/// A path without symlinks; of one that does not exist, the existing part is resolved.
fn resolved(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(path), ..) => path,
        (Err(_), Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path.to_owned(),
    }
}

//! Decides whether a project may use its user's authority: its actions, the owners of its files,
//! and the user's consent.
//!
//! ```text
//! reads    the bytes of every file that a load reads, and its owner
//! collect  typed data -> powers: programs, hosts that are asked, files outside, variables
//! store    what the user has agreed to, in the user's configuration folder
//! ```

mod collect;
mod owner;
mod pin;
mod power;
mod programs;
mod reads;
mod store;
mod variables;

use std::{fmt, path::PathBuf, sync::Arc};

use toolcrib_config::{Diagnostics, Problems};
use toolcrib_core::Digest;

use self::{collect::powers, owner::FileOwner};
pub use self::{
    owner::ForeignFile,
    power::{Action, Power},
    store::{TrustError, TrustRecord, TrustState, TrustStore},
};
pub(crate) use self::{
    owner::{check_below, check_owner},
    reads::ReadFiles,
};
use crate::{
    LoadError, LoadOptions, PROJECT_FILE,
    config::ProjectFile,
    resolve::{DatabaseSpecs, FolderSpecs, McpFiles, Part},
    root::Root,
    state::StateFolder,
};

/// The facts about a project before it is used, from the same bytes that it is built from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Review {
    /// The project's folder, resolved; `None` for imported servers alone.
    pub folder: Option<PathBuf>,
    /// Its programs, the hosts that it sends requests to, and the files outside of it that it opens.
    pub powers: Vec<Power>,
    /// The digest of all files of the project that were read, and of its programs.
    pub digest: Digest,
    /// The files and folders that were read, each with its owner.
    pub(crate) owned: Vec<FileOwner>,
}

impl Review {
    /// Whether it does something that needs the user's trust.
    pub fn needs_trust(&self) -> bool {
        self.powers.iter().any(|power| power.needs_trust)
    }
}

/// The decision on a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Everything.
    Use,
    /// It is only inspected: no server is started or connected. The reason ends the sentence "it is
    /// not asked: …".
    LookOnly(Arc<str>),
    /// It is not loaded. With the text for the user.
    Refuse(String),
}

/// Decides for the user while a project is loaded. Called on the loading thread, which may block.
pub trait Consent: fmt::Debug + Send + Sync {
    /// Whether the project may be used. Called once, before anything is created, started or
    /// connected.
    fn review(&self, review: &Review) -> Verdict;

    /// Whether these databases may be replaced by new ones. Called after the project was loaded
    /// successfully with the new ones.
    fn replace(&self, files: &[PathBuf]) -> bool;
}

/// Why no source is queried if the options forbid it.
const OFFLINE: &str = "no program is started and no connection opened (--offline)";

/// The decision on a project that is being loaded.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustDecision {
    /// Why nothing may be started or connected, if so.
    pub(crate) reason: Option<Arc<str>>,
    /// Why files outside the project may not be opened, if so: the user does not trust it.
    pub(crate) untrusted: Option<Arc<str>>,
    /// Programs that others may change.
    pub(crate) warnings: Diagnostics,
}

/// Decides whether a project that is being loaded may be used.
///
/// # Errors
/// [`LoadError::NotTrusted`].
pub(crate) fn held(
    file: &ProjectFile,
    parts: &[Part],
    mcp_files: &McpFiles,
    (databases, folders): (&DatabaseSpecs, &FolderSpecs),
    root: &Root,
    state: &StateFolder,
    options: &LoadOptions,
) -> Result<TrustDecision, LoadError> {
    let offline = options.offline.then(|| OFFLINE.into());
    let Some(consent) = &options.consent else {
        if folders.has_writable() {
            // Records the programs of the project, which the floor of folders protects.
            powers(file, parts, mcp_files, (databases, folders), root);
        }
        return Ok(TrustDecision { reason: offline, ..TrustDecision::default() });
    };
    let powers = powers(file, parts, mcp_files, (databases, folders), root);
    // A load of imported files alone reads nothing of the current folder.
    let is_project = parts.first().is_some_and(|own| own.skills.has_folder());
    let folder = is_project.then(|| root.path().to_owned());
    let mut owned = root.reads().owned();
    if state.is_default() {
        owned.extend(FileOwner::at(state.path()));
    }
    let mut digest = root.reads().digest_below(root.path());
    let foreign: Vec<_> = powers.iter().flat_map(|power| &power.foreign).collect();
    if !foreign.is_empty() {
        // A changed owner of a program outside needs new consent.
        digest = Digest::of_all([digest, Digest::of(format!("{foreign:?}"))].iter());
    }
    let warnings = Problems::new(PROJECT_FILE);
    powers.iter().flat_map(Power::warnings).for_each(|warning| warnings.push(warning));
    let (reason, untrusted) = match consent.review(&Review { folder, powers, digest, owned }) {
        Verdict::Use => (offline, None),
        Verdict::LookOnly(reason) => (offline.or(Some(Arc::clone(&reason))), Some(reason)),
        Verdict::Refuse(message) => return Err(LoadError::NotTrusted { message }),
    };
    Ok(TrustDecision { reason, untrusted, warnings: warnings.into_diagnostics() })
}

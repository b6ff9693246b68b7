//! Decides whether a project may use its user's authority: its actions, the owners of its files,
//! and the user's consent.
//!
//! ```text
//! collect  typed data -> powers: programs, hosts that are asked, files outside, variables
//! store    what the user has agreed to, in the user's configuration folder
//! ```

mod collect;
mod pin;
mod programs;
mod store;
mod variables;

use std::sync::Arc;

use toolcrib_config::Problems;
use toolcrib_core::Digest;

use self::collect::powers;
pub use self::store::{TrustError, TrustRecord, TrustState, TrustStore};
use crate::{
    bind::{mcp_files::McpFiles, part::Part},
    build::{DatabaseSpecs, FolderSpecs},
    error::LoadError,
    file::{PROJECT_FILE, ProjectFile},
    read::{owner::FileOwner, root::Root},
    user::{
        consent::{Review, TrustDecision, Verdict},
        options::LoadOptions,
        power::Power,
        state::StateFolder,
    },
};

/// Why no source is queried if the options forbid it.
const OFFLINE: &str = "no program is started and no connection opened (--offline)";

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

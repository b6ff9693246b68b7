//! Whether a project may use its user's authority: what it would do, whose its files are, and what
//! the user has agreed to.
//!
//! ```text
//! reads    the bytes of every file that a load reads, and its owner
//! collect  typed data -> powers: programs, hosts that are asked, variables that are read
//! store    what the user has agreed to, in the user's configuration folder
//! ```

mod collect;
mod owner;
mod pin;
mod power;
mod programs;
mod reads;
mod store;

use std::{fmt, path::PathBuf, sync::Arc};

use toolcrib_core::Digest;

use self::{collect::powers, owner::Owned};
pub use self::{
    owner::Foreign,
    power::{Action, Power},
    store::{Standing, TrustError, TrustStore, Trusted},
};
pub(crate) use self::{owner::check_owner, reads::Reads};
use crate::{
    LoadError, LoadOptions,
    build::{McpFiles, Part},
    config::ProjectFile,
    root::Root,
    state::StateFolder,
};

/// What there is to know of a project before it is used: read from the very bytes that it is built
/// from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Review {
    /// The project's folder, resolved; `None` for imported servers alone.
    pub folder: Option<PathBuf>,
    /// What it may do with the user's authority.
    pub powers: Vec<Power>,
    /// The digest of all files of the project that were read, and of its programs.
    pub digest: Digest,
    /// The files and folders that were read, each with its owner.
    pub(crate) owned: Vec<Owned>,
}

/// What may be done with a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Everything.
    Use,
    /// It is only looked at: no server of it is started or dialed. For this reason, which ends the
    /// sentence "it is not asked: …".
    LookOnly(Arc<str>),
    /// Nothing; it is not loaded. With the text for the user.
    Refuse(String),
}

/// Whoever decides for the user while a project is loaded. Called on the loading thread, which may
/// block.
pub trait Consent: fmt::Debug + Send + Sync {
    /// Whether the project may be used. Asked once, before anything is made, started or dialed.
    fn review(&self, review: &Review) -> Verdict;

    /// Whether these databases may be replaced by new ones. Asked when the project is known to load
    /// with the new ones.
    fn replace(&self, files: &[PathBuf]) -> bool;
}

/// Why nothing is asked where the options say so.
const OFFLINE: &str = "nothing is started or dialed (--offline)";

/// Why nothing of a project that is being loaded may be started or dialed, if so.
///
/// # Errors
/// [`LoadError::NotTrusted`].
pub(crate) fn held(
    file: &ProjectFile,
    parts: &[Part],
    mcp_files: &McpFiles,
    root: &Root,
    state: &StateFolder,
    options: &LoadOptions,
) -> Result<Option<Arc<str>>, LoadError> {
    let offline = || options.offline.then(|| OFFLINE.into());
    let Some(consent) = &options.consent else { return Ok(offline()) };
    let powers = powers(file, parts, mcp_files, root);
    // A load of nothing but imported files reads nothing of its folder.
    let is_project = parts.first().is_some_and(|own| own.skills.has_folder());
    let folder = is_project.then(|| root.path().to_owned());
    let mut owned = root.reads().owned();
    if state.is_default() {
        owned.extend(Owned::folder(state.path()));
    }
    let digest = root.reads().digest_below(root.path());
    match consent.review(&Review { folder, powers, digest, owned }) {
        Verdict::Use => Ok(offline()),
        Verdict::LookOnly(reason) => Ok(offline().or(Some(reason))),
        Verdict::Refuse(message) => Err(LoadError::NotTrusted { message }),
    }
}

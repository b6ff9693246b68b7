//! The decision of a user on a project.

use std::{fmt, path::PathBuf, sync::Arc};

use toolcrib_config::Diagnostics;

use super::{
    facts::{Facts, TrustChange},
    power::Power,
};
use crate::read::owner::FileOwner;

/// The facts about a project before it is used, from the same bytes that it is built from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Review {
    /// The project's folder, resolved; `None` for imported servers alone.
    pub folder: Option<PathBuf>,
    /// Its programs, the hosts that it sends requests to, and the files outside of it that it opens.
    pub powers: Vec<Power>,
    /// The facts that the user consents to.
    pub(crate) facts: Facts,
    /// The files and folders that were read, each with its owner.
    pub(crate) owned: Vec<FileOwner>,
}

impl Review {
    /// Whether it does something that needs the user's trust.
    pub fn needs_trust(&self) -> bool {
        self.powers.iter().any(|power| power.needs_trust)
    }

    /// The changes that need new consent if the user trusted an earlier review; none if the project can do nothing
    /// now that it could not do then.
    pub fn changes_since(&self, earlier: &Self) -> Vec<TrustChange> {
        earlier.facts.changes_to(&self.facts)
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

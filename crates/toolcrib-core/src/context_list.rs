//! What a provider and its gates see.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{identity::Identity, name::SkillId};

/// What a provider sees when it is asked for its tools. Cheap to clone, so that an answer that
/// comes later can keep it.
///
/// The same context gives the same list: whatever else decides belongs into a provider's own
/// state. Neighbour: [`ToolContext`](crate::ToolContext) is what a running call sees.
#[derive(Debug, Clone)]
pub struct ListContext {
    iteration: u32,
    active_skills: Arc<[SkillId]>,
    identity: Arc<Identity>,
    cancellation: CancellationToken,
}

impl ListContext {
    /// A context for iteration 1 of a conversation of nobody's, without skills. For tests and
    /// for tools that look at providers; an engine sets the rest.
    pub fn new(identity: Arc<Identity>, cancellation: CancellationToken) -> Self {
        Self { iteration: 1, active_skills: Arc::default(), identity, cancellation }
    }

    /// Sets the iteration, counted from 1.
    #[must_use]
    pub fn with_iteration(mut self, iteration: u32) -> Self {
        self.iteration = iteration;
        self
    }

    /// Sets the active skills, the last activated last.
    #[must_use]
    pub fn with_active_skills(mut self, skills: Arc<[SkillId]>) -> Self {
        self.active_skills = skills;
        self
    }

    /// Sets on whose behalf.
    #[must_use]
    pub fn with_identity(mut self, identity: Arc<Identity>) -> Self {
        self.identity = identity;
        self
    }

    /// Sets what ends the listing.
    #[must_use]
    pub fn with_cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// Which iteration of the turn, from 1. It is 0 to a provider behind a
    /// [`cached`](crate::cached()) whose key does not declare it.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// The skill activated last, if any.
    pub fn active_skill(&self) -> Option<&SkillId> {
        self.active_skills.last()
    }

    /// All active skills, the last activated last.
    pub fn active_skills(&self) -> &Arc<[SkillId]> {
        &self.active_skills
    }

    /// On whose behalf. Behind a [`cached`](crate::cached()) it names only what the key declares, and
    /// the conversation is empty unless that is one of them.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// Fires when the run is cancelled; a provider that waits must watch it. Behind a
    /// [`cached`](crate::cached()) it fires when nobody waits for the answer any more.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}

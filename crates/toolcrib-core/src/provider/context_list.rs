//! The context of providers and gates.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    names::{identity::Identity, name::SkillId},
    tool::client_port::{ClientAbilities, ClientHandle},
};

/// The context of a listing. Cheap to clone, so that an asynchronous listing can keep it.
///
/// The same context must give the same list; other inputs belong in the provider's state. Neighbor:
/// [`ToolContext`](crate::ToolContext) is the context of a running call.
#[derive(Debug, Clone)]
pub struct ListContext {
    iteration: u32,
    active_skills: Arc<[SkillId]>,
    identity: Arc<Identity>,
    cancellation: CancellationToken,
    client: Option<ClientHandle>,
    wait_limit: Option<Duration>,
}

impl ListContext {
    /// A context for iteration 1 of a conversation without skills. For tests and for tools that
    /// inspect providers; an engine sets the rest.
    pub fn new(identity: Arc<Identity>, cancellation: CancellationToken) -> Self {
        Self {
            iteration: 1,
            active_skills: Arc::default(),
            identity,
            cancellation,
            client: None,
            wait_limit: None,
        }
    }

    /// Sets the iteration, counted from 1.
    #[must_use]
    pub fn with_iteration(mut self, iteration: u32) -> Self {
        self.iteration = iteration;
        self
    }

    /// Sets the active skills, the most recently activated last.
    #[must_use]
    pub fn with_active_skills(mut self, skills: Arc<[SkillId]>) -> Self {
        self.active_skills = skills;
        self
    }

    /// Sets the identity that asks.
    #[must_use]
    pub fn with_identity(mut self, identity: Arc<Identity>) -> Self {
        self.identity = identity;
        self
    }

    /// Sets the client of the run.
    #[must_use]
    pub fn with_client(mut self, client: Option<ClientHandle>) -> Self {
        self.client = client;
        self
    }

    /// Sets the [limit of the wait](Self::wait_limit).
    #[must_use]
    pub fn with_wait_limit(mut self, limit: Option<Duration>) -> Self {
        self.wait_limit = limit;
        self
    }

    /// How long the listing is waited for; none if it has no limit. The caller ends the wait itself. A
    /// provider whose source is slow may fail earlier: it may count from the first of several listings
    /// that wait for the same response, so that a source without a response costs one wait. Nothing
    /// inside a [`cached`](crate::cached()).
    pub fn wait_limit(&self) -> Option<Duration> {
        self.wait_limit
    }

    /// The abilities of the run's client for a server, by the operator's name of the server.
    /// Nothing inside a [`cached`](crate::cached()).
    pub fn client_abilities(&self, server: &str) -> ClientAbilities {
        self.client.as_ref().map(|client| client.0.abilities(server)).unwrap_or_default()
    }

    /// The iteration of the turn, from 1. Inside a [`cached`](crate::cached()) it is 0 unless the
    /// key declares it.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// The most recently activated skill, if any.
    pub fn active_skill(&self) -> Option<&SkillId> {
        self.active_skills.last()
    }

    /// All active skills, the most recently activated last.
    pub fn active_skills(&self) -> &Arc<[SkillId]> {
        &self.active_skills
    }

    /// The identity of the run. Inside a [`cached`](crate::cached()) it contains only the fields of
    /// the key, and the conversation is empty unless it is one of them.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// Fires when the run is cancelled; a provider that waits must watch it. Inside a
    /// [`cached`](crate::cached()) it fires when no caller waits for the listing any more.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{chance::random_share, context_list::ListContext, identity::Identity, name::SkillId};

/// A field of a [`ListContext`] that a cached answer may depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyField {
    /// The customer or organisation.
    Tenant,
    /// The person or service. Declare the tenant too, unless a principal's name is the same one
    /// everywhere.
    Principal,
    /// The conversation: an answer that is kept for one only.
    Conversation,
    /// The skill that was activated last.
    ActiveSkill,
    /// All active skills, in the order in which they were activated.
    ActiveSkills,
    /// The iteration: an answer that is kept for one of a turn, and shared by turns that run side by
    /// side.
    Iteration,
}

/// How long an answer is fresh. There is no default: how often a catalogue changes, only its owner
/// knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttl(Option<Duration>);

impl Ttl {
    /// So long, less the [jitter](CacheOptions::jitter).
    pub fn after(fresh_for: Duration) -> Self {
        Self(Some(fresh_for))
    }

    /// Until the cache is [invalidated](super::Cached::invalidate) or the entry makes room. For what
    /// cannot change while the process runs: a model that is shown tools that are gone is worse off
    /// than one that waits.
    pub fn forever() -> Self {
        Self(None)
    }

    /// How long, or for ever.
    pub fn duration(self) -> Option<Duration> {
        self.0
    }
}

/// What is cached by what, for how long, and what happens afterwards.
#[derive(Debug, Clone)]
#[must_use = "options do nothing until they are passed to `cached`"]
pub struct CacheOptions {
    fields: Fields,
    ttl: Ttl,
    jitter: f64,
    stale_for: Duration,
    stale_on_error: Duration,
    pub(super) max_entries: usize,
}

impl CacheOptions {
    /// Answers depend on these fields and nothing else, and are fresh for so long. Without a field
    /// one answer holds for everybody. The provider inside is shown these fields and no other, so a
    /// key that is too narrow gives everybody too little, and nobody what is another's.
    pub fn new(key: impl IntoIterator<Item = KeyField>, ttl: Ttl) -> Self {
        let mut fields = Fields::default();
        key.into_iter().for_each(|field| fields.declare(field));
        Self {
            fields,
            ttl,
            jitter: 0.1,
            stale_for: Duration::ZERO,
            stale_on_error: Duration::ZERO,
            max_entries: 256,
        }
    }

    /// The share of the TTL, 0 to 1, up to which an answer's time is shortened by chance, so that
    /// what was fetched together is not fetched together again. Default: 0.1.
    pub fn jitter(mut self, share: f64) -> Self {
        self.jitter = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self
    }

    /// For so long behind its time an answer is still given, at once, while one new answer is
    /// fetched in the background. Default: not at all.
    pub fn stale_for(mut self, duration: Duration) -> Self {
        self.stale_for = duration;
        self
    }

    /// For so long behind its time an answer is given when the source fails. A failing gate and a
    /// cancellation are none of its business, they stay failures. Default: not at all.
    pub fn stale_on_error(mut self, duration: Duration) -> Self {
        self.stale_on_error = duration;
        self
    }

    /// How many answers are kept, at least one; what was used longest ago makes room. Default: 256.
    pub fn max_entries(mut self, entries: usize) -> Self {
        self.max_entries = entries.max(1);
        self
    }

    pub(super) fn key(&self, cx: &ListContext) -> Key {
        self.fields.key(cx)
    }

    /// When an answer that is made now is no longer fresh; never, if there is no such time.
    pub(super) fn fresh_until(&self, made: Instant) -> Option<Instant> {
        let ttl = self.ttl.0?;
        let shortened_by = ttl.mul_f64(self.jitter * random_share());
        made.checked_add(ttl.saturating_sub(shortened_by))
    }

    /// For how long behind its time an answer may be given while a new one is fetched.
    pub(super) fn serves_stale_for(&self) -> Duration {
        self.stale_for
    }

    /// Whether an answer whose time is over may be given while a new one is fetched.
    pub(super) fn serves_stale(&self, over_for: Duration) -> bool {
        over_for < self.stale_for
    }

    /// Whether it may be given because the source failed.
    pub(super) fn serves_on_error(&self, over_for: Duration) -> bool {
        over_for < self.stale_on_error
    }
}

/// Which fields are declared.
#[derive(Debug, Clone, Copy, Default)]
struct Fields {
    tenant: bool,
    principal: bool,
    conversation: bool,
    active_skill: bool,
    active_skills: bool,
    iteration: bool,
}

impl Fields {
    fn declare(&mut self, field: KeyField) {
        match field {
            KeyField::Tenant => self.tenant = true,
            KeyField::Principal => self.principal = true,
            KeyField::Conversation => self.conversation = true,
            KeyField::ActiveSkill => self.active_skill = true,
            KeyField::ActiveSkills => self.active_skills = true,
            KeyField::Iteration => self.iteration = true,
        }
    }

    fn key(self, cx: &ListContext) -> Key {
        let identity = cx.identity();
        Key {
            tenant: identity.tenant.clone().filter(|_| self.tenant),
            principal: identity.principal.clone().filter(|_| self.principal),
            conversation: self.conversation.then(|| Arc::clone(&identity.conversation)),
            active_skill: cx.active_skill().cloned().filter(|_| self.active_skill),
            active_skills: self.active_skills.then(|| Arc::clone(cx.active_skills())),
            iteration: self.iteration.then(|| cx.iteration()),
        }
    }
}

/// The values of the declared fields. What is not declared is absent, for everybody.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
    conversation: Option<Arc<str>>,
    active_skill: Option<SkillId>,
    active_skills: Option<Arc<[SkillId]>>,
    iteration: Option<u32>,
}

impl Key {
    /// What the provider inside sees. It is made of the key, so it cannot hold what the key does
    /// not.
    pub(super) fn shown(&self, cancellation: CancellationToken) -> ListContext {
        let identity = Identity {
            tenant: self.tenant.clone(),
            principal: self.principal.clone(),
            conversation: self.conversation.clone().unwrap_or_default(),
        };
        let skills = match (&self.active_skills, &self.active_skill) {
            (Some(all), _) => Arc::clone(all),
            (None, Some(last)) => Arc::from([last.clone()]),
            (None, None) => Arc::default(),
        };
        ListContext::new(Arc::new(identity), cancellation)
            .with_iteration(self.iteration.unwrap_or(0))
            .with_active_skills(skills)
    }
}

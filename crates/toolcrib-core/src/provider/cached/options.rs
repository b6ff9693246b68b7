use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    internal::chance::random_share,
    names::{identity::Identity, name::SkillId},
    provider::{context_list::ListContext, listing_info::time_left},
};

/// A field of [`ListContext`] that is part of a cache key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyField {
    /// The customer or organization.
    Tenant,
    /// The person or service. Declare the tenant too, unless principals' names are unique across
    /// tenants.
    Principal,
    /// The conversation: entries are not shared between conversations.
    Conversation,
    /// The most recently activated skill.
    ActiveSkill,
    /// All active skills, in order of activation.
    ActiveSkills,
    /// The iteration: entries are valid for one iteration, and shared by turns that run
    /// concurrently.
    Iteration,
}

/// The time to live of an entry. It has no default: only the owner of a catalog knows how often
/// it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttl(Option<Duration>);

impl Ttl {
    /// Fresh for this time, less the [jitter](CacheOptions::jitter).
    pub fn after(fresh_for: Duration) -> Self {
        Self(Some(fresh_for))
    }

    /// Fresh until [invalidated](super::Cached::invalidate) or evicted. For catalogs that cannot
    /// change while the process runs: showing a model tools that no longer exist is worse than
    /// waiting.
    pub fn forever() -> Self {
        Self(None)
    }

    /// The time to live; `None` means forever.
    pub fn duration(self) -> Option<Duration> {
        self.0
    }
}

/// Options of [`cached`](super::cached()): key, TTL, and use of expired entries.
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
    /// A key of these fields and a TTL. Without fields, one entry serves all callers. The inner
    /// provider sees only these fields, so a key that is too narrow shows every caller too few
    /// tools, and never another identity's tools.
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

    /// The share of the TTL, 0 to 1, by which an entry's TTL is randomly shortened at most, so that
    /// entries fetched together do not expire together. Default: 0.1.
    pub fn jitter(mut self, share: f64) -> Self {
        self.jitter = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self
    }

    /// Stale-while-revalidate: for this long after expiry an entry is still served immediately,
    /// while one fetch runs in the background. Default: off.
    pub fn stale_for(mut self, duration: Duration) -> Self {
        self.stale_for = duration;
        self
    }

    /// Stale-if-error: for this long after expiry an entry is served if the source fails. A failing
    /// gate and a cancellation stay failures. Default: off.
    pub fn stale_on_error(mut self, duration: Duration) -> Self {
        self.stale_on_error = duration;
        self
    }

    /// The maximum number of entries, at least one; the least recently used is evicted. Default:
    /// 256.
    pub fn max_entries(mut self, entries: usize) -> Self {
        self.max_entries = entries.max(1);
        self
    }

    pub(super) fn key(&self, cx: &ListContext) -> ListingKey {
        self.fields.key(cx)
    }

    /// The expiry of an entry made now; `None` means never.
    pub(super) fn fresh_until(&self, made: Instant) -> Option<Instant> {
        let ttl = self.ttl.0?;
        let shortened_by = ttl.mul_f64(self.jitter * random_share());
        made.checked_add(ttl.saturating_sub(shortened_by))
    }

    /// The rest of the TTL at an age, without the jitter.
    pub(super) fn left(&self, age: Duration) -> Duration {
        self.ttl.0.map_or(Duration::MAX, |ttl| time_left(ttl, age))
    }

    /// The stale-while-revalidate time.
    pub(super) fn serves_stale_for(&self) -> Duration {
        self.stale_for
    }

    /// Whether an expired entry may be served while it is revalidated.
    pub(super) fn serves_stale(&self, over_for: Duration) -> bool {
        over_for < self.stale_for
    }

    /// Whether an expired entry may be served because the source failed.
    pub(super) fn serves_on_error(&self, over_for: Duration) -> bool {
        over_for < self.stale_on_error
    }
}

/// The declared fields.
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

    fn key(self, cx: &ListContext) -> ListingKey {
        let identity = cx.identity();
        ListingKey {
            tenant: identity.tenant.clone().filter(|_| self.tenant),
            principal: identity.principal.clone().filter(|_| self.principal),
            conversation: self.conversation.then(|| Arc::clone(&identity.conversation)),
            active_skill: cx.active_skill().cloned().filter(|_| self.active_skill),
            active_skills: self.active_skills.then(|| Arc::clone(cx.active_skills())),
            iteration: self.iteration.then(|| cx.iteration()),
        }
    }
}

/// The values of the declared fields. Undeclared fields are absent for every caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListingKey {
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
    conversation: Option<Arc<str>>,
    active_skill: Option<SkillId>,
    active_skills: Option<Arc<[SkillId]>>,
    iteration: Option<u32>,
}

impl ListingKey {
    /// The context for the inner provider, built from the key so that it cannot contain other
    /// fields.
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

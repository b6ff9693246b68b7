//! Sums of usage, in memory.

use std::{collections::BTreeMap, sync::Arc};

use toolcrib_core::{
    SessionOwner, SessionStoreError, Spent, StoredUsage, UsageEntry, UsageSource, UsageStore,
};

use crate::{memory::MemoryStore, session::today};

type Owner = (Option<Arc<str>>, Option<Arc<str>>);

/// The sums of a store, by day, owner, session and source.
pub(crate) type HeldUsage = BTreeMap<(u64, Owner, Option<Arc<str>>, UsageSource), UsageEntry>;

impl UsageStore for MemoryStore {
    fn add_usage(
        &self,
        owner: &SessionOwner,
        session: Option<&Arc<str>>,
        entries: &[UsageEntry],
    ) -> Result<(), SessionStoreError> {
        let mut held = self.held_usage();
        let owner = (owner.tenant.clone(), owner.principal.clone());
        for entry in entries {
            let key = (today(), owner.clone(), session.cloned(), entry.source.clone());
            let new = || UsageEntry::new(entry.source.clone());
            held.entry(key).or_insert_with(new).add(entry);
        }
        Ok(())
    }

    fn usage_since(&self, day: u64) -> Result<Vec<StoredUsage>, SessionStoreError> {
        let held = self.held_usage();
        let since = held.iter().filter(|((of, ..), _)| *of >= day);
        Ok(since
            .map(|((day, (tenant, principal), session, _), entry)| {
                let owner = SessionOwner { tenant: tenant.clone(), principal: principal.clone() };
                StoredUsage::new(*day, owner, session.clone(), entry.clone())
            })
            .collect())
    }

    fn spent_today(&self, owner: Option<&SessionOwner>) -> Result<Spent, SessionStoreError> {
        let held = self.usage_since(today())?;
        let theirs = held.iter().filter(|one| owner.is_none_or(|owner| one.owner == *owner));
        Ok(theirs.fold(Spent::default(), |sum, one| sum.with(&one.entry)))
    }
}

//! Sums of usage, as all stores read them.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use toolcrib_core::{SessionOwner, StoredUsage, UsageEntry, UsageSource};

use crate::frozen::FrozenError;

/// Sums by day, owner, session and source.
#[derive(Default)]
pub(crate) struct UsageSums(BTreeMap<UsageKey, UsageEntry>);

/// The key of a sum, in the order in which sums are returned.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct UsageKey {
    day: u64,
    owner: String,
    /// Empty without one.
    session: Arc<str>,
    source: UsageSource,
}

impl UsageSums {
    pub(crate) fn add(&mut self, day: u64, owner: String, session: &Arc<str>, entry: UsageEntry) {
        let (session, source) = (Arc::clone(session), entry.source.clone());
        match self.0.entry(UsageKey { day, owner, session, source }) {
            Entry::Vacant(vacant) => drop(vacant.insert(entry)),
            Entry::Occupied(sum) => sum.into_mut().add(&entry),
        }
    }

    /// The sums, with the owner of each column.
    pub(crate) fn into_stored<E>(
        self,
        owner_of: impl Fn(&str) -> Result<SessionOwner, E>,
    ) -> Result<Vec<StoredUsage>, E> {
        let stored = self.0.into_iter().map(|(key, entry)| {
            let session = Some(key.session).filter(|session| !session.is_empty());
            Ok(StoredUsage::new(key.day, owner_of(&key.owner)?, session, entry))
        });
        stored.collect()
    }
}

/// Whether an entry only has the size of a tool's definition.
pub(crate) fn is_definition(entry: &UsageEntry) -> bool {
    let mut definition = UsageEntry::new(entry.source.clone());
    definition.definition_bytes = entry.definition_bytes;
    matches!(entry.source, UsageSource::Tool(_)) && *entry == definition
}

/// The names and sizes of definitions that were offered together, as a text that sessions with the same
/// menu share; `None` without any.
pub(crate) fn sizes_of(definitions: &[&UsageEntry]) -> Result<Option<String>, FrozenError> {
    let sizes = definitions.iter().filter_map(|entry| match &entry.source {
        UsageSource::Tool(name) => Some((name, entry.definition_bytes)),
        UsageSource::Model(_) => None,
    });
    let sizes: Vec<_> = sizes.collect();
    match sizes.is_empty() {
        true => Ok(None),
        false => Ok(Some(serde_json::to_string(&sizes)?)),
    }
}

/// The definitions of such a text, each as often as the menu was offered.
pub(crate) fn definitions_of(
    sizes: &str,
    times: u64,
) -> Result<impl Iterator<Item = UsageEntry> + use<>, FrozenError> {
    let sizes: Vec<(Arc<str>, u64)> = serde_json::from_str(sizes)?;
    Ok(sizes.into_iter().map(move |(name, bytes)| {
        let mut entry = UsageEntry::new(UsageSource::Tool(name));
        entry.definition_bytes = bytes.saturating_mul(times);
        entry
    }))
}

//! A snapshot of the secrets, and the search for all of them in one pass.

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    REDACTED,
    forms::{Form, add_forms},
    search::{ScanResult, Search},
};

/// A secret, and its name.
#[derive(Debug, Clone)]
pub(crate) struct KnownSecret {
    pub(crate) value: Arc<str>,
    pub(crate) names: Vec<Arc<str>>,
}

/// A snapshot of the secrets.
#[derive(Default)]
pub(crate) struct KnownSecrets {
    /// Differs from that of any other snapshot of the process; 0 without secrets.
    pub(crate) version: u64,
    secrets: Vec<KnownSecret>,
    forms: Vec<Form>,
    search: Option<Box<Search>>,
}

impl KnownSecrets {
    pub(crate) fn of(secrets: Vec<KnownSecret>) -> Self {
        static LAST_VERSION: AtomicU64 = AtomicU64::new(0);
        let version = match secrets.is_empty() {
            true => 0,
            false => LAST_VERSION.fetch_add(1, Ordering::Relaxed) + 1,
        };
        let mut forms = Vec::new();
        for (position, secret) in secrets.iter().enumerate() {
            add_forms(position, &secret.value, &mut forms);
        }
        let search = (!forms.is_empty()).then(|| Box::new(Search::of(&forms)));
        Self { version, secrets, forms, search }
    }

    pub(crate) fn secrets(&self) -> &[KnownSecret] {
        &self.secrets
    }

    /// The reference that takes the place of the secrets in a part of a text: their names, so that it
    /// stays the same when a secret is replaced by another. A variable of the environment precedes
    /// declared names: those may be learned later.
    pub(crate) fn reference(
        &self,
        part: &Range<usize>,
        places: &[(Range<usize>, usize)],
    ) -> String {
        let within = places
            .iter()
            .filter(|(place, _)| part.start <= place.start && place.end <= part.end)
            .filter_map(|(_, secret)| self.secrets.get(*secret)?.names.iter().min());
        let names: BTreeSet<_> = within.map(|name| &**name).collect();
        match names.is_empty() {
            true => REDACTED.to_owned(),
            false => format!("[secret {}]", Vec::from_iter(names).join(", ")),
        }
    }

    /// Finds secrets. Toolcrib's own marker contains none.
    pub(crate) fn find(&self, text: &str) -> ScanResult {
        let mut found = ScanResult::default();
        let Some(search) = &self.search else { return found };
        search.scan(&self.forms, text.as_bytes(), &mut found);
        found.unsearched_from = found.unsearched_from.map(|from| text.floor_char_boundary(from));
        if !found.places.is_empty() {
            let ours: Vec<_> =
                text.match_indices(REDACTED).map(|(at, ours)| at..at + ours.len()).collect();
            found.places.retain(|(place, _)| {
                let before = ours.partition_point(|ours| ours.start <= place.start);
                let ours = before.checked_sub(1).and_then(|last| ours.get(last));
                ours.is_none_or(|ours| place.end > ours.end)
            });
        }
        found
    }
}

//! A snapshot of the secrets, and the search for all of them in one pass.

use std::sync::Arc;

use super::{
    REDACTED,
    forms::{Form, add_forms},
    search::{ScanResult, Search},
};

/// A secret, and its name.
#[derive(Debug, Clone)]
pub(super) struct KnownSecret {
    pub(super) value: Arc<str>,
    pub(super) names: Vec<Arc<str>>,
}

/// A snapshot of the secrets.
#[derive(Default)]
pub(super) struct KnownSecrets {
    secrets: Vec<KnownSecret>,
    forms: Vec<Form>,
    search: Option<Box<Search>>,
}

impl KnownSecrets {
    pub(super) fn of(secrets: Vec<KnownSecret>) -> Self {
        let mut forms = Vec::new();
        for (position, secret) in secrets.iter().enumerate() {
            add_forms(position, &secret.value, &mut forms);
        }
        let search = (!forms.is_empty()).then(|| Box::new(Search::of(&forms)));
        Self { secrets, forms, search }
    }

    pub(super) fn secrets(&self) -> &[KnownSecret] {
        &self.secrets
    }

    /// Finds secrets. Toolcrib's own marker contains none.
    pub(super) fn find(&self, text: &str) -> ScanResult {
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

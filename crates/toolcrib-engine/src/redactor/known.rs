//! The secrets at one time, and the search for all of them in one pass.

use std::{ops::Range, sync::Arc};

use super::{
    REDACTED,
    forms::{Form, add_forms},
    search::Search,
};

/// A secret, and what it is called.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) value: Arc<str>,
    pub(super) names: Vec<Arc<str>>,
}

/// The secrets at one time.
#[derive(Default)]
pub(super) struct KnownSecrets {
    secrets: Vec<Known>,
    forms: Vec<Form>,
    search: Option<Box<Search>>,
}

/// What a text holds.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Each place, with the position of its secret.
    pub(super) places: Vec<(Range<usize>, usize)>,
    /// From where on something may be the beginning of a secret, and no more.
    pub(super) open_from: Option<usize>,
}

impl KnownSecrets {
    pub(super) fn of(secrets: Vec<Known>) -> Self {
        let mut forms = Vec::new();
        for (position, secret) in secrets.iter().enumerate() {
            add_forms(position, &secret.value, &mut forms);
        }
        let search = (!forms.is_empty()).then(|| Box::new(Search::of(&forms)));
        Self { secrets, forms, search }
    }

    pub(super) fn secrets(&self) -> &[Known] {
        &self.secrets
    }

    /// Where secrets are. What we wrote ourselves holds none.
    pub(super) fn find(&self, text: &str) -> Found {
        let mut found = Found::default();
        let Some(search) = &self.search else { return found };
        search.scan(&self.forms, text.as_bytes(), &mut found);
        if !found.places.is_empty() {
            let ours: Vec<_> =
                text.match_indices(REDACTED).map(|(at, ours)| at..at + ours.len()).collect();
            found.places.retain(|(place, _)| {
                !ours.iter().any(|ours| ours.start <= place.start && place.end <= ours.end)
            });
        }
        found
    }
}

impl Found {
    /// The places in order, those that overlap as one.
    pub(super) fn ranges(&self) -> Vec<Range<usize>> {
        let mut places: Vec<_> = self.places.iter().map(|(place, _)| place.clone()).collect();
        places.sort_unstable_by_key(|place| place.start);
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(places.len());
        for place in places {
            match merged.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => merged.push(place),
            }
        }
        merged
    }
}

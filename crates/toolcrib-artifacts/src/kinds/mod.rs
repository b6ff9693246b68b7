//! Kinds of artifacts and their queries.

mod arguments;
mod condition;
mod csv;
mod json;
pub(crate) mod kind;
mod markdown;
mod text;

use std::{fmt, sync::Arc};

use self::kind::{ArtifactKind, ContentHead};
pub use self::{arguments::arguments, csv::Csv, json::Json, markdown::Markdown};
pub(crate) use self::{
    arguments::check,
    text::{Text, limit_properties},
};

/// The available kinds, in the order of detection.
#[derive(Clone)]
pub(crate) struct Kinds(Vec<Arc<dyn ArtifactKind>>);

impl Kinds {
    /// Additional kinds first, and `text` last, which matches everything.
    pub(crate) fn new(of_users: Vec<Arc<dyn ArtifactKind>>) -> Self {
        let built_in: [Arc<dyn ArtifactKind>; 7] = [
            Arc::new(Json::lines()),
            Arc::new(Json::document()),
            Arc::new(Markdown),
            Arc::new(Csv::commas()),
            Arc::new(Csv::tabs()),
            Arc::new(Csv::semicolons()),
            Arc::new(Text),
        ];
        Self(of_users.into_iter().chain(built_in).collect())
    }

    /// The kind with this name; `text` if it no longer exists.
    pub(crate) fn named(&self, name: &str) -> Arc<dyn ArtifactKind> {
        let named = self.0.iter().find(|kind| kind.name() == name);
        named.cloned().unwrap_or_else(|| Arc::new(Text))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|kind| kind.name())
    }

    /// Whether a kind with this name exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|kind| kind.name() == name)
    }

    /// The kind of a content.
    pub(crate) fn detect(&self, start: &ContentHead<'_>) -> Arc<dyn ArtifactKind> {
        let detected = self.0.iter().find(|kind| kind.detect(start));
        detected.cloned().unwrap_or_else(|| Arc::new(Text))
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

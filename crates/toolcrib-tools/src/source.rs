//! The source of a declaration: a table in a file, or code.

use std::sync::Arc;

use toolcrib_config::{Places, Spot, Table};

/// The source of a declaration. [`Source::default`] is for one that is made in code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// Shared by the declarations that one table makes.
    places: Option<Arc<Places>>,
    /// Whether a part could not be read, which makes the use of parameters unknown.
    is_partial: bool,
    is_schema_unknown: bool,
    secrets: Vec<Arc<str>>,
}

impl Source {
    /// A table in a file. Errors then have the place of their field. Empty texts in it count as
    /// unreadable, and as recorded by the reader.
    #[doc(hidden)]
    pub fn of(table: &Table<'_>) -> Self {
        Self { places: Some(Arc::new(table.places())), ..Self::default() }
    }

    /// Adds the names of declared secrets: a field that uses one as a parameter then gets a help
    /// text.
    #[must_use]
    pub fn with_secrets(mut self, secrets: &[Arc<str>]) -> Self {
        self.secrets = secrets.to_vec();
        self
    }

    /// Marks the input schema as unreadable: parameters are then not checked.
    #[must_use]
    pub fn without_schema(mut self) -> Self {
        self.is_schema_unknown = true;
        self
    }

    /// The places in the table; `None` for code.
    #[doc(hidden)]
    pub fn places(&self) -> Option<&Places> {
        self.places.as_deref()
    }

    /// The place of a byte of a text; `None` for code and for the table itself.
    #[doc(hidden)]
    pub fn character(&self, pointer: &str, offset: usize) -> Option<Spot> {
        self.places()?.character(pointer, offset)
    }

    /// The place of a value; `None` for code and for the table itself.
    #[doc(hidden)]
    pub fn value(&self, pointer: &str) -> Option<&Spot> {
        self.places()?.value(pointer)
    }

    /// The place of a key; `None` for code and for the table itself.
    #[doc(hidden)]
    pub fn key(&self, pointer: &str) -> Option<&Spot> {
        self.places()?.key(pointer)
    }

    pub(crate) fn mark_partial_if(&mut self, is_partial: bool) {
        self.is_partial |= is_partial;
    }

    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial
    }

    pub(crate) fn is_schema_unknown(&self) -> bool {
        self.is_schema_unknown
    }

    pub(crate) fn is_secret(&self, name: &str) -> bool {
        self.secrets.iter().any(|secret| **secret == *name)
    }
}

//! All that is wrong with a tool is said at once.

use std::fmt::Display;

use quote::ToTokens;

/// Collects mistakes, so that what comes after the first is looked at too.
#[derive(Default)]
pub(crate) struct Mistakes(Option<syn::Error>);

impl Mistakes {
    /// A mistake whose place is these tokens.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.add(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn add(&mut self, mistake: syn::Error) {
        match &mut self.0 {
            None => self.0 = Some(mistake),
            Some(first) => first.combine(mistake),
        }
    }

    /// What an attempt gave, where it gave something.
    pub(crate) fn take<T>(&mut self, attempt: syn::Result<T>) -> Option<T> {
        attempt.map_err(|mistake| self.add(mistake)).ok()
    }

    /// What was made, if nothing was wrong.
    pub(crate) fn finish<T>(self, made: T) -> syn::Result<T> {
        self.0.map_or(Ok(made), Err)
    }
}

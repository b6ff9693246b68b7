//! Collection of errors, so that all errors of a tool are reported at once.

use std::fmt::Display;

use quote::ToTokens;

/// Collects errors, so that checks continue after the first.
#[derive(Default)]
pub(crate) struct Mistakes(Option<syn::Error>);

impl Mistakes {
    /// Adds an error at these tokens.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.add(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn add(&mut self, mistake: syn::Error) {
        match &mut self.0 {
            None => self.0 = Some(mistake),
            Some(first) => first.combine(mistake),
        }
    }

    /// The value of a result, or `None` after recording its error.
    pub(crate) fn take<T>(&mut self, attempt: syn::Result<T>) -> Option<T> {
        attempt.map_err(|mistake| self.add(mistake)).ok()
    }

    /// The value, if no error was recorded.
    pub(crate) fn finish<T>(self, made: T) -> syn::Result<T> {
        self.0.map_or(Ok(made), Err)
    }
}

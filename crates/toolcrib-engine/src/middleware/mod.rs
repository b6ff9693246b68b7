//! Reducers of results.

pub(crate) mod reducers;

pub use self::reducers::{DuplicateReducerError, ReducerRegistration, Reducers};

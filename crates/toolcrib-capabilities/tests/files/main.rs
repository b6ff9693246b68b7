//! Folders whose paths cannot be left, through their handles.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "the tests look at the files from outside")]

mod attacks;
mod listing;
mod moving;
mod reading;
mod removing;
mod support;
mod writing;

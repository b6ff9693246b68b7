//! Regression tests of faults that were found from outside.

mod silent_programs;
mod split_secrets;

//! Regression tests of faults that were found from outside, one module per kind.

mod left_out;
mod line_ends;
mod read_only_files;
mod undo;

//! Faults that were found from outside.

mod one_use {
    mod attacks;
}

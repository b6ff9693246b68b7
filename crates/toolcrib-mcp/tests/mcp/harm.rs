//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

#[cfg(not(portable))]
mod bounded_work;
#[cfg(not(portable))]
mod secret_spellings;

//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod process_limits;
mod process_limits_memory;
#[cfg(target_os = "linux")]
mod sandbox_steering;

//! Programs that do what they can to leave their sandbox. `cargo xtask attacks` runs all modules of
//! this name. Each attack succeeds without the sandbox, which its test shows where this is harmless.

mod files;
mod network;
mod processes;

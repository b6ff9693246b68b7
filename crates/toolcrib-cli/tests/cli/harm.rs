//! Faults that were found from outside: one module per kind, run by `cargo xtask harm`.

mod allow_origin;
mod false_claims_gateway;
mod served;
mod skill_door;
mod small_holes_gateway;
mod terminal_words;

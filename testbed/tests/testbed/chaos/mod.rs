//! MCP servers that break a rule, each beside one that breaks none, on one engine: every call is
//! answered with the right code, no call is executed twice, the good server notices nothing, and
//! afterwards nothing is left.

mod crib;
mod faults;
mod left;

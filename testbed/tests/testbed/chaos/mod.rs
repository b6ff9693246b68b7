//! MCP servers that break a rule, each with a correct one on the same engine: every call is
//! answered with the right code, no call is executed twice, the correct server is unaffected, and
//! afterwards nothing is left.

mod crib;
mod faults;
mod left;

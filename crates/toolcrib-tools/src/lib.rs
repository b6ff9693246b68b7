//! Built-in tools, one module per toolset, and the kinds of tools that a project declares instead
//! of programming them.
//!
//! | module | what it makes |
//! |---|---|
//! | [`sql`] | a tool from SQL statements over a declared database |

pub mod sql;

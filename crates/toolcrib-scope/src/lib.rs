//! Capabilities as handles: what the body of a tool reaches of the world, it reaches through a
//! value that was handed to it, and the value's type says how far it reaches.
//!
//! | module | what it hands out |
//! |---|---|
//! | [`database`] | a declared SQLite database: [`Database`] for the host, [`DatabaseHandle`] for bodies |
//!
//! [`Database`]: database::Database
//! [`DatabaseHandle`]: database::DatabaseHandle

pub mod database;

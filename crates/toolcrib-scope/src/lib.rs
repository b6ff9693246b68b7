//! Capabilities as handles: what the body of a tool reaches of the world, it reaches through a
//! value that was handed to it, and the value's type says how far it reaches.
//!
//! | module | what it hands out |
//! |---|---|
//! | `database` | a declared SQLite database: `Database` for the host, `DatabaseHandle` for bodies |
//! | `http` | a client that asks only where it may: `HttpClient`, which a host narrows |
//! | `process` | programs, run to their end or talked with, that end with all that they start: `Processes` |
//!
//! Bodies get them from whoever makes their tool, or, by declaring capabilities, call by call from a
//! `Reach`.

// No links up there: they would be broken wherever a feature is off.

#[cfg(feature = "database")]
pub mod database;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "process")]
pub mod process;
#[cfg(any(feature = "http", feature = "process"))]
mod reach;

#[cfg(any(feature = "http", feature = "process"))]
pub use self::reach::Reach;

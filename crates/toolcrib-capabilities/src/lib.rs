//! ```
//! # #[cfg(feature = "http")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use toolcrib_capabilities::http::HttpClient;
//!
//! let client = HttpClient::builder().allowed_hosts(Some(vec!["*.example.com".parse()?])).build();
//! // A narrower client for one tool; it shares the connections.
//! let weather = client.only(["api.example.com".parse()?]);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "http"))]
//! # fn main() {}
//! ```
//!
//! Capabilities as handles: the body of a tool accesses the outside world only through values that
//! it receives, and a value's type states its access.
//!
//! | module | what it hands out |
//! |---|---|
//! | `database` | a declared SQLite database: `Database` for the host, `DatabaseHandle` for bodies |
//! | `files` | a declared folder that paths cannot leave: `Files` for the host, `FilesHandle` for bodies |
//! | `http` | a client that asks only where it may: `HttpClient`, which a host narrows |
//! | `process` | programs, run to their end or talked with, that end with all that they start: `Processes` |
//!
//! Bodies get them from the code that creates their tool, or, by declaring capabilities, call by
//! call from a `HostCapabilities`.
//!
//! # Layers
//!
//! - `database`: a SQLite database that a project declares.
//! - `framing`: streams of bytes, split into lines and server-sent events of a limited size.
//! - `reach`: the capabilities that a host grants to tools written in Rust, call by call.
//! - `process`: runs programs so that all their child processes end with them.
//! - `http`: an HTTP client with restrictions on its targets.
//! - `files`: folders whose paths cannot be left, with a record of what was read.
//! - `host_file`: files of the host, opened and replaced safely.
//! - `certificates`: the authorities by which servers are verified.
//! - `seal`: texts that only processes with the same key can write and read.
//! - `steering`: files that run or steer code when a person opens a folder, enters it or uses version control in it.

// No links above: they would be broken wherever a feature is off.

#[cfg(any(feature = "http", all(feature = "database", not(portable))))]
mod certificates;
#[cfg(all(feature = "database", portable))]
compile_error!(
    "the feature `database` keeps files private with Unix file modes; build it without `--cfg portable`"
);
#[cfg(all(feature = "database", not(portable)))]
pub mod database;
#[cfg(feature = "files")]
pub mod files;
mod framing;
#[cfg(all(feature = "host-files", not(portable)))]
mod host_file;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "process")]
pub mod process;
#[cfg(any(feature = "files", feature = "http", feature = "process"))]
mod reach;
#[cfg(feature = "seal")]
mod seal;
#[cfg(any(feature = "files", feature = "process"))]
mod steering;

#[cfg(any(feature = "files", feature = "http", feature = "process"))]
pub use self::reach::HostCapabilities;

/// Helpers that the crates of this workspace share. Not part of the public API: they may change in
/// any version.
#[doc(hidden)]
pub mod __internal {
    #[cfg(feature = "files")]
    pub use crate::files::folder_of;
    pub use crate::framing::{Line, LineDecoder, SseDecoder, SseError, SseEvent, SseItem};
    #[cfg(all(feature = "host-files", not(portable)))]
    pub use crate::host_file::{
        FileStamp, create_private, draft, is_of_user, is_private_folder, no_follow, replace,
    };
    #[cfg(feature = "seal")]
    pub use crate::seal::SealingKey;
    #[cfg(any(feature = "files", feature = "process"))]
    pub use crate::steering::steering;
}

//! The vendors' APIs for benches: a server with prepared responses, and models that call it.

mod format;
mod server;
mod streams;

use std::io;

use tokio::runtime::{Builder, Runtime};

pub use self::{
    format::Wire,
    server::{Seen, Server},
    streams::answers,
};

/// A runtime of one thread, with I/O.
///
/// # Errors
/// If the system cannot create it.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

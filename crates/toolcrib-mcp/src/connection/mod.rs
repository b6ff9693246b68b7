//! The protocol of a client, over a program's pipes, HTTP, or a pipe in memory.
//!
//! A call goes down from [`Connection::call_tool`] to a [peer](peer), which makes an
//! [exchange](exchange) of it, to a [transport](transport), which writes its bytes. The server's
//! messages come back through the [intake](intake), which settles the exchange. Of `rmcp` only the
//! types of messages are used.

mod caller;
mod connector;
mod content;
mod ending;
mod exchange;
mod handshake;
mod http;
mod intake;
mod lines;
mod logs;
mod message;
mod observer;
mod open;
mod pace;
mod peer;
#[cfg(any(test, feature = "mock"))]
mod pipe;
mod program;
mod result;
mod subscription;
mod text;
mod transport;
pub(crate) mod types;

pub use self::observer::WireEvent;
#[cfg(any(test, feature = "mock"))]
pub(crate) use self::pipe::pipe;
pub(crate) use self::{
    caller::Caller,
    connector::{Connector, Opening},
    content::{RESOURCE, block, resource},
    handshake::Greeting,
    http::{MarkedArguments, http},
    observer::WireObserver,
    open::Connection,
    program::stdio,
    text::{Redaction, bounded},
    transport::CallerContext,
};

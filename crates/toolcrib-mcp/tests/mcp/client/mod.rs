//! The client, through the real protocol and an engine.

mod calls;
mod ends;
mod failures;
mod lists;
mod mock;
mod odd;
#[cfg(portable)]
mod portable;
pub(crate) mod support;

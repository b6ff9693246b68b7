//! The messages of the protocol, the headers that repeat them, and the responses over HTTP.

pub(crate) mod events;
pub(crate) mod find_id;
pub(crate) mod headers;
pub(crate) mod message;
pub(crate) mod params;
pub(crate) mod quoted;
pub(crate) mod reply;
pub(crate) mod result;

//! Streams of bytes, split into lines and server-sent events of a limited size.

mod lines;
mod sse;

pub use self::{
    lines::{Line, LineDecoder},
    sse::{SseDecoder, SseError, SseEvent, SseItem},
};

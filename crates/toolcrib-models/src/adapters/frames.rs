//! Splits a stream of bytes into the vendor's messages.

use std::str::Utf8Error;

use toolcrib_capabilities::__internal::{Line, LineDecoder, SseDecoder, SseError, SseItem};
use toolcrib_core::{ModelError, ModelErrorClass};

/// The longest line, and the longest message of several lines: 8 MiB. A single piece from a model
/// is far shorter; without a limit, a server that never ends a line would fill the memory.
const MAX_FRAME_BYTES: usize = 8 * 1024 * 1024;

/// How messages are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events.
    Events,
    /// A JSON value per line.
    Lines,
}

impl Framing {
    /// The media type of such a stream.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Frame {
    /// The kind of event; empty if absent.
    pub(super) event: String,
    /// The data.
    pub(super) data: String,
}

/// Cuts a stream into frames.
#[derive(Debug)]
pub(super) enum Frames {
    Events(SseDecoder),
    Lines(LineDecoder),
}

impl Frames {
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Events => Self::Events(SseDecoder::new(MAX_FRAME_BYTES)),
            Framing::Lines => Self::Lines(LineDecoder::new(MAX_FRAME_BYTES)),
        }
    }

    /// Adds bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Events(events) => events.push(bytes),
            Self::Lines(lines) => lines.push(bytes),
        }
    }

    /// The next complete frame.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, ModelError> {
        match self {
            Self::Events(events) => {
                while let Some(item) = events.decode().map_err(|error| match error {
                    SseError::TooLong { .. } => too_long(),
                    SseError::NotText(error) => not_text(error),
                })? {
                    // An event without data has no meaning for vendors' APIs.
                    if let SseItem::Event(event) = item
                        && let Some(data) = event.data
                    {
                        return Ok(Some(Frame { event: event.event.unwrap_or_default(), data }));
                    }
                }
            }
            Self::Lines(lines) => {
                while let Some(line) = lines.decode() {
                    if let Some(frame) = of_line(&line)? {
                        return Ok(Some(frame));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The rest when the stream has ended: the last line may lack its line end. An event without
    /// its blank line is ignored, as the standard says.
    pub(super) fn rest(&mut self) -> Result<Option<Frame>, ModelError> {
        match self {
            Self::Events(_) => Ok(None),
            Self::Lines(lines) => lines.rest().map_or(Ok(None), |line| of_line(&line)),
        }
    }
}

fn of_line(line: &Line) -> Result<Option<Frame>, ModelError> {
    let Line::Whole(line) = line else { return Err(too_long()) };
    let data = std::str::from_utf8(line).map_err(not_text)?.trim();
    Ok((!data.is_empty()).then(|| Frame { data: data.to_owned(), event: String::new() }))
}

fn not_text(error: Utf8Error) -> ModelError {
    ModelError::new(
        ModelErrorClass::Protocol,
        format!("the server's response is not text: {error}"),
    )
}

fn too_long() -> ModelError {
    ModelError::new(
        ModelErrorClass::Protocol,
        format!("the server sends a message of more than {MAX_FRAME_BYTES} bytes"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(framing: Framing, pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut frames = Frames::new(framing);
        let mut found = Vec::new();
        for piece in pieces {
            frames.push(piece);
            while let Some(frame) = frames.next().unwrap() {
                found.push((frame.event, frame.data));
            }
        }
        while let Some(frame) = frames.rest().unwrap() {
            found.push((frame.event, frame.data));
        }
        found
    }

    fn owned(found: &[(&str, &str)]) -> Vec<(String, String)> {
        found.iter().map(|(event, data)| ((*event).to_owned(), (*data).to_owned())).collect()
    }

    #[test]
    fn events_are_found_wherever_the_stream_is_cut() {
        let stream = "\u{feff}: hello\r\n\r\nevent: a\r\ndata: {\"x\":\"é€😀\"}\r\n\r\ndata\n\n\
                      data:1\ndata: 2\nid: 7\nretry: 5\n\nevent: lonely\n\ndata: cut off";
        let expected = owned(&[("a", "{\"x\":\"é€😀\"}"), ("", ""), ("", "1\n2")]);
        let bytes = stream.as_bytes();
        for size in 1..=bytes.len() {
            let pieces: Vec<_> = bytes.chunks(size).collect();
            assert_eq!(frames(Framing::Events, &pieces), expected, "pieces of {size} bytes");
        }
    }

    #[test]
    fn lines_are_messages_and_the_last_may_lack_its_end() {
        let stream = "{\"a\":1}\n\n  {\"b\":2}\r\n{\"c\":3}";
        let expected = owned(&[("", "{\"a\":1}"), ("", "{\"b\":2}"), ("", "{\"c\":3}")]);
        for size in 1..=stream.len() {
            let pieces: Vec<_> = stream.as_bytes().chunks(size).collect();
            assert_eq!(frames(Framing::Lines, &pieces), expected, "pieces of {size} bytes");
        }
    }

    #[test]
    fn what_has_no_end_is_refused_before_it_fills_the_memory() {
        let mut line = Frames::new(Framing::Events);
        let piece = vec![b'x'; 1024 * 1024];
        let refused = (0..100).find_map(|_| {
            line.push(&piece);
            line.next().err()
        });
        assert_eq!(refused.unwrap().class, ModelErrorClass::Protocol);

        let mut event = Frames::new(Framing::Events);
        let data = format!("data: {}\n", "x".repeat(1024 * 1024));
        let refused = (0..100).find_map(|_| {
            event.push(data.as_bytes());
            event.next().err()
        });
        assert_eq!(refused.unwrap().class, ModelErrorClass::Protocol);

        let mut binary = Frames::new(Framing::Lines);
        binary.push(b"\xff\xfe\n");
        assert_eq!(binary.next().unwrap_err().class, ModelErrorClass::Protocol);
    }
}

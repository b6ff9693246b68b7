//! Splits a stream of bytes into the vendor's messages.
//!
//! Its first bytes decide how, not its declared media type: servers ignore `stream` and send the whole
//! response as one JSON value, and proxies declare a stream as `text/plain` or not at all.

use std::{collections::VecDeque, mem, str::Utf8Error};

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
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
pub(super) struct Frames {
    form: Form,
    /// Whether the stream begins as one of the known forms does; unknown before its first byte.
    is_known: Option<bool>,
    /// Whether a frame was returned.
    any: bool,
}

/// The form in which a server sends its response.
#[derive(Debug)]
enum Form {
    /// Nothing has arrived that distinguishes it from the expected one.
    Unknown(Framing, Vec<u8>),
    Events(SseDecoder),
    Lines(LineDecoder),
    /// JSON values that are neither events nor lines: the whole response, or a list.
    Values(Vec<u8>),
    /// The values, once all have arrived.
    Read(VecDeque<Frame>),
}

impl Frames {
    pub(super) fn new(framing: Framing) -> Self {
        Self { form: Form::Unknown(framing, Vec::new()), is_known: None, any: false }
    }

    /// Whether the stream begins as neither events, nor lines of JSON, nor a JSON value do.
    pub(super) fn is_unknown(&self) -> bool {
        self.is_known == Some(false)
    }

    /// Whether the response is JSON instead of a stream.
    pub(super) fn is_value(&self) -> bool {
        matches!(self.form, Form::Values(_) | Form::Read(_))
    }

    /// Whether no frame was returned.
    pub(super) fn is_empty(&self) -> bool {
        !self.any
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// The response is one JSON value of more than 8 MiB.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        match &mut self.form {
            Form::Events(events) => events.push(bytes),
            Form::Lines(lines) => lines.push(bytes),
            Form::Values(held) => {
                held.extend_from_slice(bytes);
                if held.len() > MAX_FRAME_BYTES {
                    return Err(too_long());
                }
            }
            Form::Read(_) => {}
            Form::Unknown(framing, held) => {
                let from = if held.is_empty() { after_blanks(bytes) } else { bytes };
                held.extend_from_slice(from);
                if let Some(first) = held.first().copied() {
                    self.is_known = Some(begins_as_known(first));
                    let is_line = *framing == Framing::Lines && first == b'{';
                    if !is_line || from.contains(&b'\n') || held.len() > MAX_FRAME_BYTES {
                        self.form = Form::of(*framing, first, mem::take(held));
                    }
                }
            }
        }
        Ok(())
    }

    /// The next complete frame.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, ModelError> {
        let frame = match &mut self.form {
            Form::Events(events) => next_event(events)?,
            Form::Lines(lines) => next_line(lines)?,
            Form::Read(frames) => frames.pop_front(),
            Form::Unknown(..) | Form::Values(_) => None,
        };
        self.any |= frame.is_some();
        Ok(frame)
    }

    /// The rest when the stream has ended: the last line may lack its line end. An event without
    /// its blank line is ignored, as the standard says.
    pub(super) fn rest(&mut self) -> Result<Option<Frame>, ModelError> {
        if let Form::Unknown(framing, held) = &mut self.form
            && let Some(first) = held.first().copied()
        {
            self.form = Form::of(*framing, first, mem::take(held));
        }
        if let Form::Values(held) = &mut self.form {
            self.form = Form::Read(values(&mem::take(held))?);
        }
        if let Some(frame) = self.next()? {
            return Ok(Some(frame));
        }
        let frame = match &mut self.form {
            Form::Lines(lines) => lines.rest().map_or(Ok(None), |line| of_line(&line))?,
            _ => None,
        };
        self.any |= frame.is_some();
        Ok(frame)
    }
}

impl Form {
    /// The form of a stream that begins with these bytes. Lines of JSON are known by the first one:
    /// JSON that is indented is one value.
    fn of(expected: Framing, first: u8, held: Vec<u8>) -> Self {
        let is_lines = match (expected, first) {
            (Framing::Events, b'{') | (_, b'[') => return Self::Values(held),
            (Framing::Events, _) => false,
            (Framing::Lines, b'{') => {
                let line = held.split(|byte| *byte == b'\n').next().unwrap_or_default();
                let read = serde_json::from_slice::<IgnoredAny>(line);
                if line.len() < held.len() && read.is_err_and(|error| error.is_eof()) {
                    return Self::Values(held);
                }
                true
            }
            (Framing::Lines, first) => !begins_event(first),
        };
        if is_lines {
            let mut lines = LineDecoder::new(MAX_FRAME_BYTES);
            lines.push(&held);
            Self::Lines(lines)
        } else {
            let mut events = SseDecoder::new(MAX_FRAME_BYTES);
            events.push(&held);
            Self::Events(events)
        }
    }
}

/// The bytes after blanks and a byte order mark, which begin no frame.
fn after_blanks(bytes: &[u8]) -> &[u8] {
    let is_blank =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'\xef' | b'\xbb' | b'\xbf');
    let begin = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(bytes.len());
    bytes.get(begin..).unwrap_or_default()
}

fn begins_as_known(first: u8) -> bool {
    begins_event(first) || matches!(first, b'{' | b'[')
}

/// Whether a byte begins a comment, or one of the fields `data`, `event`, `id` and `retry`.
fn begins_event(first: u8) -> bool {
    matches!(first, b':' | b'd' | b'e' | b'i' | b'r')
}

fn next_event(events: &mut SseDecoder) -> Result<Option<Frame>, ModelError> {
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
    Ok(None)
}

fn next_line(lines: &mut LineDecoder) -> Result<Option<Frame>, ModelError> {
    while let Some(line) = lines.decode() {
        if let Some(frame) = of_line(&line)? {
            return Ok(Some(frame));
        }
    }
    Ok(None)
}

/// The values of a response that is JSON; those of a list, as Gemini sends them without SSE.
fn values(json: &[u8]) -> Result<VecDeque<Frame>, ModelError> {
    let frame = |value: Box<RawValue>| Frame { data: value.get().to_owned(), event: String::new() };
    let mut frames = VecDeque::new();
    for value in serde_json::Deserializer::from_slice(json).into_iter::<Box<RawValue>>() {
        let value = value.map_err(not_json)?;
        if value.get().starts_with('[') {
            let list: Vec<Box<RawValue>> = serde_json::from_str(value.get()).map_err(not_json)?;
            frames.extend(list.into_iter().map(frame));
        } else {
            frames.push_back(frame(value));
        }
    }
    Ok(frames)
}

fn of_line(line: &Line) -> Result<Option<Frame>, ModelError> {
    let Line::Whole(line) = line else { return Err(too_long()) };
    let data = std::str::from_utf8(line).map_err(not_text)?.trim();
    Ok((!data.is_empty()).then(|| Frame { data: data.to_owned(), event: String::new() }))
}

fn not_json(error: serde_json::Error) -> ModelError {
    let message = "the server's response is neither a stream nor JSON";
    ModelError::new(ModelErrorClass::Protocol, message).caused_by(error)
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
            frames.push(piece).unwrap();
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
    fn a_response_that_is_not_the_expected_stream_is_read_wherever_it_is_cut() {
        let indented = "{\n  \"a\": 1\n}";
        // (expected, response, frames)
        let cases: [(_, &str, &[&str]); 8] = [
            (Framing::Events, "\n {\"a\":1}\n", &["{\"a\":1}"]),
            (Framing::Events, indented, &[indented]),
            (Framing::Events, "{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"]),
            (Framing::Events, "[{\"a\":1},\n{\"b\":2}]", &["{\"a\":1}", "{\"b\":2}"]),
            (Framing::Events, "\u{feff}{\"a\":1}", &["{\"a\":1}"]),
            (Framing::Lines, indented, &[indented]),
            (Framing::Lines, "data: {\"a\":1}\n\ndata: [DONE]\n\n", &["{\"a\":1}", "[DONE]"]),
            (Framing::Lines, "{\"a\":1}", &["{\"a\":1}"]),
        ];
        for (framing, response, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|data| ("", *data)).collect();
            for size in 1..=response.len() {
                let pieces: Vec<_> = response.as_bytes().chunks(size).collect();
                assert_eq!(frames(framing, &pieces), owned(&expected), "{response} by {size}");
            }
        }
        let mut page = Frames::new(Framing::Events);
        page.push(b"\n<html>").unwrap();
        assert!(page.is_unknown() && page.is_empty());
        let mut cut = Frames::new(Framing::Events);
        cut.push(b"{\"a\":").unwrap();
        assert_eq!(cut.rest().unwrap_err().class, ModelErrorClass::Protocol);
    }

    #[test]
    fn what_has_no_end_is_refused_before_it_fills_the_memory() {
        let mut line = Frames::new(Framing::Events);
        let piece = vec![b'x'; 1024 * 1024];
        let refused = (0..100).find_map(|_| {
            line.push(&piece).unwrap();
            line.next().err()
        });
        assert_eq!(refused.unwrap().class, ModelErrorClass::Protocol);

        let mut event = Frames::new(Framing::Events);
        let data = format!("data: {}\n", "x".repeat(1024 * 1024));
        let refused = (0..100).find_map(|_| {
            event.push(data.as_bytes()).unwrap();
            event.next().err()
        });
        assert_eq!(refused.unwrap().class, ModelErrorClass::Protocol);

        let mut value = Frames::new(Framing::Events);
        value.push(b"{").unwrap();
        let refused = (0..100).find_map(|_| value.push(&piece).err());
        assert_eq!(refused.unwrap().class, ModelErrorClass::Protocol);

        let mut binary = Frames::new(Framing::Lines);
        binary.push(b"\xff\xfe\n").unwrap();
        assert_eq!(binary.next().unwrap_err().class, ModelErrorClass::Protocol);
    }
}

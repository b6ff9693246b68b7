//! A stream of bytes, cut into what the vendor means as one message.

use bytes::BytesMut;
use tokio_util::codec::{Decoder as _, LinesCodec, LinesCodecError};
use toolcrib_core::{ModelError, ModelErrorClass};

/// The longest line, and the longest message of several lines: 8 MiB. What a model writes in one
/// piece is far shorter; without a bound, a server that never ends a line would fill the memory.
pub(super) const MAX_FRAME_BYTES: usize = 8 * 1024 * 1024;

/// How messages are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// [Server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html), with
    /// lines that end in `\n` or `\r\n`.
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
    /// What kind of event it is; empty where that is not said.
    pub(super) event: String,
    /// What it says.
    pub(super) data: String,
}

#[derive(Debug, Default)]
struct Begun {
    frame: Frame,
    has_data: bool,
    /// How long its lines are together, those that say nothing here too.
    bytes: usize,
}

/// Cuts a stream into frames.
#[derive(Debug)]
pub(super) struct Frames {
    framing: Framing,
    lines: LinesCodec,
    bytes: BytesMut,
    /// Whether a line has come.
    has_line: bool,
    /// The event whose end has not come yet.
    begun: Begun,
}

impl Frames {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            lines: LinesCodec::new_with_max_length(MAX_FRAME_BYTES),
            bytes: BytesMut::new(),
            has_line: false,
            begun: Default::default(),
        }
    }

    /// More bytes have come.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame of what has come.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, ModelError> {
        while let Some(line) =
            self.lines.decode(&mut self.bytes).map_err(|error| unreadable(&error))?
        {
            if let Some(frame) = self.line(&line)? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// What is left when the stream has ended: the last line may lack its end. An event that lacks
    /// its blank line is passed over, as the standard says.
    pub(super) fn rest(&mut self) -> Result<Option<Frame>, ModelError> {
        if self.framing == Framing::Events {
            // It may end within a character, which is no fault of its own.
            self.bytes.clear();
            return Ok(None);
        }
        match self.lines.decode_eof(&mut self.bytes).map_err(|error| unreadable(&error))? {
            Some(line) => self.line(&line),
            None => Ok(None),
        }
    }

    fn line(&mut self, line: &str) -> Result<Option<Frame>, ModelError> {
        // A stream may begin with a byte order mark.
        let is_first = !std::mem::replace(&mut self.has_line, true);
        let line = line.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(line);
        match self.framing {
            Framing::Lines => {
                let data = line.trim();
                Ok((!data.is_empty())
                    .then(|| Frame { data: data.to_owned(), event: String::new() }))
            }
            Framing::Events => self.event_line(line),
        }
    }

    fn event_line(&mut self, line: &str) -> Result<Option<Frame>, ModelError> {
        if line.is_empty() {
            let Begun { frame, has_data, .. } = std::mem::take(&mut self.begun);
            return Ok(has_data.then_some(frame));
        }
        let Begun { frame, has_data, bytes } = &mut self.begun;
        *bytes = bytes.saturating_add(line.len());
        if *bytes > MAX_FRAME_BYTES {
            return Err(too_long());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if *has_data {
                    frame.data.push('\n');
                }
                frame.data.push_str(value);
                *has_data = true;
            }
            "event" => value.clone_into(&mut frame.event),
            // A comment, by which servers keep the connection alive, or what does not matter here.
            _ => {}
        }
        Ok(None)
    }
}

fn unreadable(error: &LinesCodecError) -> ModelError {
    match error {
        LinesCodecError::MaxLineLengthExceeded => too_long(),
        LinesCodecError::Io(error) => ModelError::new(
            ModelErrorClass::Protocol,
            format!("what the server sends is not text: {error}"),
        ),
    }
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
    fn only_a_stream_begins_with_a_byte_order_mark() {
        let stream = "\u{feff}data: 1\n\u{feff}data: 2\n\ndata: \u{feff}3\n\n";
        let expected = owned(&[("", "1"), ("", "\u{feff}3")]);
        assert_eq!(frames(Framing::Events, &[stream.as_bytes()]), expected);
        // The second message cannot be read: that is said of it.
        let expected = owned(&[("", "1"), ("", "\u{feff}2")]);
        assert_eq!(frames(Framing::Lines, &["\u{feff}1\n\u{feff}2".as_bytes()]), expected);
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
        assert!(line.bytes.len() <= MAX_FRAME_BYTES + piece.len());

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

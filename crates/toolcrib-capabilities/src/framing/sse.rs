use std::str::Utf8Error;

use super::lines::{Line, LineDecoder};

/// Decodes a stream of bytes as
/// [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html) (SSE), in
/// time linear in its length. An event at the end of a stream without its blank line is ignored, as
/// the standard says. Unlike a browser's, this decoder refuses bytes that are not UTF-8.
#[derive(Debug)]
pub struct SseDecoder {
    lines: LineDecoder,
    max_bytes: usize,
    event: Option<SseEvent>,
    /// The total length of the lines since the last blank one, including ignored ones.
    bytes: usize,
}

/// An event of a stream of server-sent events. A field that was not sent is `None`, unlike one
/// without a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The kind of event.
    pub event: Option<String>,
    /// The data: the values of its lines, with LF between them.
    pub data: Option<String>,
    /// The position in the stream.
    pub id: Option<String>,
    /// The time to wait before reconnecting, in milliseconds.
    pub retry: Option<u64>,
}

/// The next part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseItem {
    /// An event with at least one field.
    Event(SseEvent),
    /// A line without an effect: a comment that keeps the connection alive, an unknown field, an
    /// invalid value, or a repeated blank line. A caller may limit them.
    Ignored {
        /// The length of the line.
        bytes: usize,
    },
}

/// Why a stream cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event is longer than the decoder's limit.
    #[error("an event has more than {max_bytes} bytes")]
    TooLong {
        /// The limit.
        max_bytes: usize,
    },
    /// A line is not UTF-8.
    #[error("a line is not UTF-8: {0}")]
    NotText(#[from] Utf8Error),
}

impl SseDecoder {
    /// A decoder of events whose lines have together at most `max_bytes`, without their ends.
    pub fn new(max_bytes: usize) -> Self {
        Self { lines: LineDecoder::with_any_ends(max_bytes), max_bytes, event: None, bytes: 0 }
    }

    /// Adds bytes of the stream. Decode all items before the next push.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// The next item; `None` until more bytes are added.
    ///
    /// # Errors
    /// [`SseError`]; the rest of the stream is of no use after it.
    pub fn decode(&mut self) -> Result<Option<SseItem>, SseError> {
        while let Some(line) = self.lines.decode() {
            let too_long = SseError::TooLong { max_bytes: self.max_bytes };
            let Line::Whole(line) = line else { return Err(too_long) };
            if line.is_empty() {
                let is_repeated = std::mem::take(&mut self.bytes) == 0;
                match self.event.take() {
                    Some(event) => return Ok(Some(SseItem::Event(event))),
                    None if is_repeated => return Ok(Some(SseItem::Ignored { bytes: 0 })),
                    None => continue,
                }
            }
            self.bytes = self.bytes.saturating_add(line.len());
            if self.bytes > self.max_bytes {
                return Err(too_long);
            }
            if !self.field(std::str::from_utf8(&line)?) {
                return Ok(Some(SseItem::Ignored { bytes: line.len() }));
            }
        }
        Ok(None)
    }

    /// Whether the line has an effect.
    fn field(&mut self, line: &str) -> bool {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        let is_digits = || value.bytes().all(|byte| byte.is_ascii_digit());
        match field {
            "data" => match &mut self.event.get_or_insert_default().data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            "event" => self.event.get_or_insert_default().event = Some(value.to_owned()),
            "id" if !value.contains('\0') => {
                self.event.get_or_insert_default().id = Some(value.to_owned());
            }
            "retry" if is_digits() => match value.parse() {
                Ok(ms) => self.event.get_or_insert_default().retry = Some(ms),
                Err(_) => return false,
            },
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use toolcrib_clock::processor_time;

    use super::*;

    /// The items of the pieces up to the first error, and the bytes read until then.
    fn items(
        max_bytes: usize,
        pieces: &[&[u8]],
    ) -> (Vec<SseItem>, Result<(), &'static str>, usize) {
        let mut decoder = SseDecoder::new(max_bytes);
        let (mut found, mut read) = (Vec::new(), 0);
        for piece in pieces {
            decoder.push(piece);
            read += piece.len();
            loop {
                match decoder.decode() {
                    Ok(Some(item)) => found.push(item),
                    Ok(None) => break,
                    Err(SseError::TooLong { .. }) => return (found, Err("too long"), read),
                    Err(SseError::NotText(_)) => return (found, Err("not text"), read),
                }
            }
        }
        (found, Ok(()), read)
    }

    fn events(stream: &[u8]) -> Vec<SseEvent> {
        let (items, end, _) = items(1024, &[stream]);
        assert_eq!(end, Ok(()));
        let event = |item| match item {
            SseItem::Event(event) => Some(event),
            SseItem::Ignored { .. } => None,
        };
        items.into_iter().filter_map(event).collect()
    }

    fn data(data: &str) -> SseEvent {
        SseEvent { data: Some(data.to_owned()), ..SseEvent::default() }
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        let stream = "\u{feff}: hello\r\n\r\nevent: a\r\ndata: {\"x\":\"é€😀\"}\r\n\r\ndata\n\n\
                      data:1\rdata:  2\rid: 7\rretry: 5\r\rmade-up: 1\n\nevent: lonely\n\n\
                      data: \u{feff}3\n\ndata: cut off";
        let named = |name: &str| SseEvent { event: Some(name.to_owned()), ..SseEvent::default() };
        assert_eq!(
            events(stream.as_bytes()),
            [
                SseEvent { data: Some("{\"x\":\"é€😀\"}".to_owned()), ..named("a") },
                data(""),
                SseEvent { id: Some("7".to_owned()), retry: Some(5), ..data("1\n 2") },
                named("lonely"),
                data("\u{feff}3"),
            ]
        );
        let last = events(b"event: a\nevent: b\nid: 1\nid: 2\0\nretry: 1\nretry: +2\nretry: x\n\n");
        let expected = SseEvent { id: Some("1".to_owned()), retry: Some(1), ..named("b") };
        assert_eq!(last, [expected]);
    }

    #[test]
    fn lines_without_an_effect_are_reported_and_events_are_not() {
        for (stream, lengths) in [
            ("data: 1\n\ndata: 2\r\n\r\nid: 1\r\r", vec![]),
            (": a\n\n", vec![3]),
            (":\n:\n:\n", vec![1, 1, 1]),
            ("\n\r\n\r", vec![0, 0, 0]),
            ("data: 1\n: a\n\n", vec![3]),
            ("made-up\nretry: soon\nid: \0\n", vec![7, 11, 5]),
        ] {
            let (items, end, _) = items(1024, &[stream.as_bytes()]);
            let ignored = items.into_iter().filter_map(|item| match item {
                SseItem::Ignored { bytes } => Some(bytes),
                SseItem::Event(_) => None,
            });
            assert_eq!((ignored.collect(), end), (lengths, Ok(())), "{stream:?}");
        }
    }

    #[test]
    fn an_event_over_the_limit_and_one_that_never_ends_are_refused() {
        for (stream, end) in [
            ("data:6\ndata:6\n\n".repeat(9), Ok(())),
            (":eight!\ndata:6\n\n".to_owned(), Err("too long")),
            ("data:a longer line\n".to_owned(), Err("too long")),
            ("x".repeat(100), Err("too long")),
            ("x\n".repeat(100), Err("too long")),
        ] {
            let pieces: Vec<_> = stream.as_bytes().chunks(1).collect();
            let (_, found, read) = items(12, &pieces);
            assert_eq!(found, end, "{stream:?}");
            // Refused before it fills the memory.
            assert!(end.is_ok() || read <= 2 * 13, "{stream:?}: {read}");
        }
        assert_eq!(items(12, &[b"\xff\xfe\n"]).1, Err("not text"));
    }

    /// The time is quadratic if a byte is scanned or copied again for every later one.
    #[test]
    fn single_bytes_are_decoded_in_linear_time() {
        const BYTES: usize = 1024 * 1024;
        for pattern in ["x", "data:\n", "\r", "\r\n\n", "é"] {
            let stream = pattern.repeat(BYTES / pattern.len());
            let mut decoder = SseDecoder::new(BYTES);
            let began = processor_time();
            for byte in stream.as_bytes() {
                decoder.push(std::slice::from_ref(byte));
                while decoder.decode().unwrap().is_some() {}
            }
            let took = processor_time().saturating_sub(began);
            assert!(took < Duration::from_secs(10), "{pattern:?}: {took:?}");
        }
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_items(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "\r", "\n", "\r\n", "data", ":", " ", "event", "id", "retry", "7", "é", "\u{feff}",
                ]),
                0..60,
            ),
            is_text in any::<bool>(),
            cuts in prop::collection::vec(0..200_usize, 0..12),
            max_bytes in 0..60_usize,
        ) {
            let mut stream = parts.concat().into_bytes();
            if !is_text {
                stream.push(0xff);
                stream.extend_from_slice(b"\n\n");
            }
            let mut cuts: Vec<_> = cuts.into_iter().filter(|cut| *cut <= stream.len()).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
            let (found, end, _) = items(max_bytes, &pieces);
            let (whole, whole_end, _) = items(max_bytes, &[&stream]);
            prop_assert_eq!((found, end), (whole, whole_end));
        }
    }
}

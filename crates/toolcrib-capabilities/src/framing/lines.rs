use std::io;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The minimum room for the next read.
const READ_BYTES: usize = 16 * 1024;

/// Some programs begin their output with it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Splits a stream of bytes into lines, in time linear in its length. At most one incomplete line
/// up to the limit, and the last bytes pushed, are in memory.
#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// The length of the prefix that contains no line end.
    scanned: usize,
    max_bytes: usize,
    ends: LineEnds,
    /// Whether no line has begun: a byte order mark may follow.
    is_at_start: bool,
    /// Whether the last line ended with a CR: an LF right after it belongs to that end.
    is_after_cr: bool,
    /// Whether pieces of the current line were returned.
    is_too_long: bool,
}

#[derive(Debug, Clone, Copy)]
enum LineEnds {
    Lf,
    /// CR, LF or CRLF.
    Any,
}

/// A line without its end, or a piece of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line within the limit.
    Whole(BytesMut),
    /// The next bytes of a line over the limit. The last piece may be empty.
    TooLong {
        /// The bytes.
        bytes: BytesMut,
        /// Whether the line ends here.
        is_end: bool,
    },
}

impl LineDecoder {
    /// Lines of at most `max_bytes` that end with LF. A CR before it is part of the line, and a byte
    /// order mark at the start of the stream is not.
    pub fn new(max_bytes: usize) -> Self {
        Self::with_ends(max_bytes, LineEnds::Lf)
    }

    /// The same, with lines that end with CR, LF or CRLF.
    pub(super) fn with_any_ends(max_bytes: usize) -> Self {
        Self::with_ends(max_bytes, LineEnds::Any)
    }

    fn with_ends(max_bytes: usize, ends: LineEnds) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            max_bytes,
            ends,
            is_at_start: true,
            is_after_cr: false,
            is_too_long: false,
        }
    }

    /// Adds bytes of the stream. Decode all lines before the next push.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Reads and adds bytes. Returns their number, 0 at the end. Cancel safe.
    ///
    /// # Errors
    /// Those of the reader.
    pub async fn fill(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        self.buffer.reserve(READ_BYTES);
        from.read_buf(&mut self.buffer).await
    }

    /// The next line, or piece of a line over the limit; `None` until more bytes are added.
    pub fn decode(&mut self) -> Option<Line> {
        if self.is_after_cr
            && let Some(first) = self.buffer.first()
        {
            self.is_after_cr = false;
            if *first == b'\n' {
                self.buffer.advance(1);
            }
        }
        let unseen = self.buffer.get(self.scanned..).unwrap_or_default();
        let end = match self.ends {
            LineEnds::Lf => memchr::memchr(b'\n', unseen),
            LineEnds::Any => memchr::memchr2(b'\r', b'\n', unseen),
        };
        match end {
            Some(at) => {
                let mut line = self.buffer.split_to(self.scanned + at + 1);
                self.is_after_cr = line.last() == Some(&b'\r');
                line.truncate(line.len() - 1);
                Some(self.line(line))
            }
            None if self.buffer.len() > self.max_bytes => {
                self.is_too_long = true;
                self.scanned = 0;
                Some(Line::TooLong { bytes: self.buffer.split(), is_end: false })
            }
            None => {
                self.scanned = self.buffer.len();
                None
            }
        }
    }

    /// The last line when the stream has ended without an end of it.
    pub fn rest(&mut self) -> Option<Line> {
        let line = self.buffer.split();
        (self.is_too_long || !line.is_empty()).then(|| self.line(line))
    }

    fn line(&mut self, mut line: BytesMut) -> Line {
        self.scanned = 0;
        let is_first = std::mem::replace(&mut self.is_at_start, false);
        if std::mem::replace(&mut self.is_too_long, false) || line.len() > self.max_bytes {
            return Line::TooLong { bytes: line, is_end: true };
        }
        if is_first && line.starts_with(BYTE_ORDER_MARK) {
            line.advance(BYTE_ORDER_MARK.len());
        }
        Line::Whole(line)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lines of the pieces: their bytes, and whether they are within the limit.
    fn lines(decoder: &mut LineDecoder, pieces: &[&[u8]]) -> Vec<(Vec<u8>, bool)> {
        let mut found = Vec::new();
        let mut long = Vec::new();
        let mut take = |line| match line {
            Line::Whole(line) => found.push((line.to_vec(), true)),
            Line::TooLong { bytes, is_end } => {
                long.extend_from_slice(&bytes);
                if is_end {
                    found.push((std::mem::take(&mut long), false));
                }
            }
        };
        for piece in pieces {
            decoder.push(piece);
            while let Some(line) = decoder.decode() {
                take(line);
            }
            assert!(decoder.buffer.len() <= decoder.max_bytes);
        }
        if let Some(line) = decoder.rest() {
            take(line);
        }
        found
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_lines(
            stream in prop::collection::vec(
                prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a'), Just(0xef)],
                0..80,
            ),
            cuts in prop::collection::vec(0..80_usize, 0..10),
            max_bytes in 0..12_usize,
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().filter(|cut| *cut <= stream.len()).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
            let found = lines(&mut LineDecoder::new(max_bytes), &pieces);
            let mut expected: Vec<_> = stream
                .split(|byte| *byte == b'\n')
                .map(|line| (line.to_vec(), line.len() <= max_bytes))
                .collect();
            // Without bytes after the last end there is no last line.
            if stream.last().is_none_or(|byte| *byte == b'\n') {
                expected.pop();
            }
            prop_assert_eq!(found, expected);

            let of_any = |pieces: &[&[u8]]| {
                lines(&mut LineDecoder::with_any_ends(max_bytes), pieces)
            };
            prop_assert_eq!(of_any(&pieces), of_any(&[&stream]));
        }
    }

    #[test]
    fn cr_lf_and_crlf_end_a_line_wherever_the_stream_is_cut() {
        let stream = b"a\rb\nc\r\nd\n\re\r\r\nf";
        let expected: Vec<_> = [&b"a"[..], b"b", b"c", b"d", b"", b"e", b"", b"f"]
            .map(|line| (line.to_vec(), true))
            .into();
        for size in 1..=stream.len() {
            let pieces: Vec<_> = stream.chunks(size).collect();
            assert_eq!(lines(&mut LineDecoder::with_any_ends(9), &pieces), expected, "{size}");
        }
    }

    #[test]
    fn only_a_stream_begins_with_a_byte_order_mark() {
        let stream = "\u{feff}1\n\u{feff}2".as_bytes();
        let expected = [(b"1".to_vec(), true), ("\u{feff}2".into(), true)];
        for size in 1..=stream.len() {
            let pieces: Vec<_> = stream.chunks(size).collect();
            assert_eq!(lines(&mut LineDecoder::new(9), &pieces), expected, "{size}");
        }
    }

    #[tokio::test]
    async fn a_reader_fills_it_to_the_end() {
        let mut decoder = LineDecoder::new(9);
        let mut reader = &b"one\ntwo"[..];
        assert_eq!(decoder.fill(&mut reader).await.unwrap(), 7);
        assert_eq!(decoder.fill(&mut reader).await.unwrap(), 0);
        assert_eq!(decoder.decode(), Some(Line::Whole("one".into())));
        assert_eq!(decoder.decode(), None);
        assert_eq!(decoder.rest(), Some(Line::Whole("two".into())));
        assert_eq!(decoder.rest(), None);
    }
}

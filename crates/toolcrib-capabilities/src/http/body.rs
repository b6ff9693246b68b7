//! Reads a response body, up to a size limit.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use hyper::{HeaderMap, body::Bytes, header};

use super::{error::HttpError, exchange::BodyEncoding, message::HttpResponse, stream::HttpStream};

/// The number of compressed bytes decoded at once; they expand to a thousand times as many at most.
const DECODED_AT_ONCE: usize = 4096;
/// The length limit of an unknown encoding's name in messages.
const SHOWN_ENCODING: usize = 40;

/// Refuses a body that would have to be decoded.
pub(super) fn refuse_encoded(stream: &HttpStream) -> Result<(), HttpError> {
    encoding(stream, BodyEncoding::Identity).map(drop)
}

/// Reads a body to its end and decodes it. After decoding, the headers about the encoding are
/// removed.
pub(super) async fn collect(mut stream: HttpStream) -> Result<HttpResponse, HttpError> {
    let gzip = encoding(&stream, BodyEncoding::Gzip)? == BodyEncoding::Gzip;
    let mut sink = Sink::new(gzip, stream.max_body_bytes());
    let mut is_empty = true;
    while let Some(data) = stream.chunk().await? {
        is_empty = false;
        for piece in data.chunks(DECODED_AT_ONCE) {
            sink.write_all(piece).map_err(|source| unfit(&stream, &sink, source))?;
            if gzip {
                // A chunk can be worth a millisecond of work.
                tokio::task::yield_now().await;
            }
        }
    }
    // An empty body is empty in any encoding.
    let decoded = gzip && !is_empty;
    if decoded {
        sink.end().map_err(|source| unfit(&stream, &sink, source))?;
    }
    let (status, mut headers, final_url) = stream.into_head();
    if decoded {
        headers.remove(header::CONTENT_ENCODING);
        headers.remove(header::CONTENT_LENGTH);
    }
    Ok(HttpResponse { status, headers, body: sink.into_bytes(), final_url })
}

/// The error of a sink that accepts no more.
fn unfit(stream: &HttpStream, sink: &Sink, source: io::Error) -> HttpError {
    stream.failed(if sink.bounded().over {
        stream.too_large()
    } else {
        HttpError::Decode { host: stream.host().to_owned(), source }
    })
}

/// The encoding of the body.
fn encoding(stream: &HttpStream, accepted: BodyEncoding) -> Result<BodyEncoding, HttpError> {
    if stream.is_at_end() {
        return Ok(BodyEncoding::Identity);
    }
    let named = named_encodings(stream.headers());
    match named.as_slice() {
        [] => Ok(BodyEncoding::Identity),
        [one] if accepted == BodyEncoding::Gzip && matches!(one.as_str(), "gzip" | "x-gzip") => {
            Ok(BodyEncoding::Gzip)
        }
        several => Err(stream.failed(HttpError::Encoding {
            host: stream.host().to_owned(),
            encoding: several.join(", ").chars().take(SHOWN_ENCODING).collect(),
            accepted: accepted.explained(),
        })),
    }
}

fn named_encodings(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase())
        .filter(|name| !name.is_empty() && name != "identity")
        .collect()
}

/// The destination of a body.
enum Sink {
    Plain(LimitedBuffer),
    Gzip(Box<MultiGzDecoder<LimitedBuffer>>),
}

impl Sink {
    fn new(gzip: bool, limit: usize) -> Self {
        let bounded = LimitedBuffer { bytes: Vec::new(), limit, over: false };
        if gzip { Self::Gzip(Box::new(MultiGzDecoder::new(bounded))) } else { Self::Plain(bounded) }
    }

    fn write_all(&mut self, piece: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(bounded) => bounded.write_all(piece),
            Self::Gzip(decoder) => decoder.write_all(piece),
        }
    }

    /// Checks that the decoded body is complete.
    fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
        }
    }

    fn bounded(&self) -> &LimitedBuffer {
        match self {
            Self::Plain(bounded) => bounded,
            Self::Gzip(decoder) => decoder.get_ref(),
        }
    }

    fn into_bytes(mut self) -> Bytes {
        let bounded = match &mut self {
            Self::Plain(bounded) => bounded,
            Self::Gzip(decoder) => decoder.get_mut(),
        };
        std::mem::take(&mut bounded.bytes).into()
    }
}

/// Accepts up to a number of bytes.
struct LimitedBuffer {
    bytes: Vec<u8>,
    limit: usize,
    over: bool,
}

impl Write for LimitedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit.saturating_sub(self.bytes.len()) {
            self.over = true;
            return Err(io::Error::other("it is larger than allowed"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

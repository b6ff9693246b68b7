//! Reading an answer's body, which ends at a limit whatever its sender thinks.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::{
    HeaderMap,
    body::{Body, Bytes, Incoming},
    header,
};

use super::error::HttpError;

/// How many compressed bytes are decoded at once; they become a thousand times as many at most.
const DECODED_AT_ONCE: usize = 4096;
/// How much of an unknown encoding's name is repeated.
const SHOWN_ENCODING: usize = 40;

/// Reads a body to its end and decodes it. Where it was decoded, the headers that spoke of what it
/// was are taken away.
pub(crate) async fn read(
    host: &str,
    headers: &mut HeaderMap,
    mut body: Incoming,
    limit: usize,
) -> Result<Bytes, HttpError> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || HttpError::BodyTooLarge { host: host.to_owned(), limit };
    let gzip = is_gzip(host, headers)?;
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut sink = Sink::new(gzip, limit);
    let mut arrived = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|source| HttpError::Exchange {
            host: host.to_owned(),
            source: Box::new(source),
        })?;
        // Trailers say nothing that is looked at.
        let Ok(data) = frame.into_data() else { continue };
        arrived += data.len();
        if arrived > limit {
            return Err(too_large());
        }
        for piece in data.chunks(DECODED_AT_ONCE) {
            match sink.write_all(piece) {
                Ok(()) => {}
                Err(_) if sink.is_over() => return Err(too_large()),
                Err(source) => return Err(HttpError::Decode { host: host.to_owned(), source }),
            }
            if gzip {
                // A piece can be worth a millisecond of work.
                tokio::task::yield_now().await;
            }
        }
    }
    if arrived == 0 {
        // Nothing, however it is said to be encoded.
        return Ok(Bytes::new());
    }
    let decoded = sink.finish(host, limit)?;
    if gzip {
        headers.remove(header::CONTENT_ENCODING);
        headers.remove(header::CONTENT_LENGTH);
    }
    Ok(decoded)
}

fn is_gzip(host: &str, headers: &HeaderMap) -> Result<bool, HttpError> {
    let named: Vec<String> = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase())
        .filter(|name| !name.is_empty() && name != "identity")
        .collect();
    match named.as_slice() {
        [] => Ok(false),
        [one] if matches!(one.as_str(), "gzip" | "x-gzip") => Ok(true),
        several => Err(HttpError::Encoding {
            host: host.to_owned(),
            encoding: several.join(", ").chars().take(SHOWN_ENCODING).collect(),
        }),
    }
}

/// Where a body goes.
enum Sink {
    Plain(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
}

impl Sink {
    fn new(gzip: bool, limit: usize) -> Self {
        let bounded = Bounded { bytes: Vec::new(), limit, over: false };
        if gzip { Self::Gzip(Box::new(MultiGzDecoder::new(bounded))) } else { Self::Plain(bounded) }
    }

    fn write_all(&mut self, piece: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(bounded) => bounded.write_all(piece),
            Self::Gzip(decoder) => decoder.write_all(piece),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Plain(bounded) => bounded.over,
            Self::Gzip(decoder) => decoder.get_ref().over,
        }
    }

    fn finish(mut self, host: &str, limit: usize) -> Result<Bytes, HttpError> {
        if let Self::Gzip(decoder) = &mut self
            && let Err(source) = decoder.try_finish()
        {
            let host = host.to_owned();
            return Err(if decoder.get_ref().over {
                HttpError::BodyTooLarge { host, limit }
            } else {
                HttpError::Decode { host, source }
            });
        }
        let bounded = match &mut self {
            Self::Plain(bounded) => bounded,
            Self::Gzip(decoder) => decoder.get_mut(),
        };
        Ok(std::mem::take(&mut bounded.bytes).into())
    }
}

/// Takes so many bytes and no more.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    over: bool,
}

impl Write for Bounded {
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

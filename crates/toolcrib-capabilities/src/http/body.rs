//! Decodes a response body, up to a size limit.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use hyper::{
    HeaderMap,
    body::{Buf as _, Bytes},
    header,
};

use super::{error::HttpError, message::HttpResponse, stream::HttpStream};

/// The number of compressed bytes decoded at once; they expand to a thousand times as many at most.
const DECODED_AT_ONCE: usize = 4096;
/// The length limit of an unknown encoding's name in messages.
const SHOWN_ENCODING: usize = 40;

/// Reads a body to its end.
pub(super) async fn collect(mut stream: HttpStream) -> Result<HttpResponse, HttpError> {
    let mut body = Vec::new();
    while let Some(piece) = stream.chunk().await? {
        body.extend_from_slice(&piece);
        if stream.is_decoded() {
            // A piece can be worth a millisecond of work.
            tokio::task::yield_now().await;
        }
    }
    let (status, headers, final_url) = stream.into_head();
    Ok(HttpResponse { status, headers, body: body.into(), final_url })
}

/// Whether the body is compressed, or else the names of encodings that are not decoded.
pub(super) fn is_compressed(headers: &HeaderMap) -> Result<bool, String> {
    let named = named_encodings(headers);
    match named.as_slice() {
        [] => Ok(false),
        [one] if matches!(one.as_str(), "gzip" | "x-gzip") => Ok(true),
        several => Err(several.join(", ").chars().take(SHOWN_ENCODING).collect()),
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

/// Decodes a compressed body piece by piece.
pub(super) struct BodyDecoder {
    decoder: MultiGzDecoder<LimitedBuffer>,
    /// The bytes that have arrived and are not decoded yet.
    compressed: Bytes,
    /// An empty body is empty in any encoding.
    is_empty: bool,
}

/// Why a body cannot be decoded.
pub(super) enum DecodeError {
    TooLarge,
    Invalid(io::Error),
}

impl BodyDecoder {
    /// A decoder of at most this number of bytes.
    pub(super) fn new(limit: usize) -> Self {
        let decoded = LimitedBuffer { bytes: Vec::new(), left: limit, is_over: false };
        Self { decoder: MultiGzDecoder::new(decoded), compressed: Bytes::new(), is_empty: true }
    }

    /// Whether all that has arrived is decoded.
    pub(super) fn needs_more(&self) -> bool {
        self.compressed.is_empty()
    }

    /// Adds what has arrived.
    pub(super) fn push(&mut self, compressed: Bytes) {
        self.is_empty &= compressed.is_empty();
        self.compressed = compressed;
    }

    /// Decodes the next bytes; the result may be empty.
    pub(super) fn decode(&mut self) -> Result<Bytes, DecodeError> {
        let count = self.compressed.len().min(DECODED_AT_ONCE);
        let piece = self.compressed.split_to(count);
        // Flushed: a reader may wait for the event that these bytes complete.
        let written = self.decoder.write_all(piece.chunk()).and_then(|()| self.decoder.flush());
        written.map_err(|error| self.failed(error))?;
        Ok(std::mem::take(&mut self.decoder.get_mut().bytes).into())
    }

    /// Checks at the end of the body that it was complete.
    pub(super) fn end(&mut self) -> Result<(), DecodeError> {
        match self.is_empty {
            true => Ok(()),
            false => self.decoder.try_finish().map_err(|error| self.failed(error)),
        }
    }

    fn failed(&self, error: io::Error) -> DecodeError {
        match self.decoder.get_ref().is_over {
            true => DecodeError::TooLarge,
            false => DecodeError::Invalid(error),
        }
    }
}

/// Accepts up to a number of bytes in all.
struct LimitedBuffer {
    bytes: Vec<u8>,
    left: usize,
    is_over: bool,
}

impl Write for LimitedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(left) = self.left.checked_sub(bytes.len()) else {
            self.is_over = true;
            return Err(io::Error::other("it is larger than allowed"));
        };
        self.left = left;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! The charset of a page: a byte order mark, the header, the page's own declaration, else UTF-8 or
//! windows-1252.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::Format;

/// How much of a page is searched for its declaration, in bytes, as browsers do.
const SEARCHED: usize = 1024;

pub(super) fn decode<'b>(body: &'b [u8], said: Option<&[u8]>, format: Format) -> Cow<'b, str> {
    let of_header = said.and_then(named);
    let of_page = || {
        let start = body.get(..body.len().min(SEARCHED)).unwrap_or_default();
        let found = (format == Format::Html).then(|| named(start)).flatten()?;
        // A page that was read so far is not in UTF-16.
        Some(if found.is_ascii_compatible() { found } else { UTF_8 })
    };
    let unsaid = || if str::from_utf8(body).is_ok() { UTF_8 } else { WINDOWS_1252 };
    let encoding = of_header.or_else(of_page).unwrap_or_else(unsaid);
    encoding.decode(body).0
}

/// The charset after `charset=`.
fn named(text: &[u8]) -> Option<&'static Encoding> {
    let text = text.to_ascii_lowercase();
    let key = b"charset=";
    let at = text.windows(key.len()).position(|window| window == key)?;
    let rest = text.get(at + key.len()..)?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let is_end = |byte: &u8| matches!(byte, b'"' | b'\'' | b';' | b'>' | b'/' | b' ');
    Encoding::for_label(rest.split(is_end).next()?)
}

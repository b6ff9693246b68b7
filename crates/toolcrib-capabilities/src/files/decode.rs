//! Contents of files as text or as images.

use encoding_rs::{Encoding, UTF_8};
use toolcrib_core::__internal::image_type;

use super::error::FileError;

/// The characters of an unknown encoding that a message repeats.
const ENCODING_CHARS: usize = 40;

/// The text of a content: in the named encoding, else in that of its byte order mark, else in UTF-8. The
/// mark is not part of the text.
///
/// # Errors
/// [`FileError::Encoding`], [`FileError::NotText`].
pub(super) fn text(
    bytes: Vec<u8>,
    encoding: Option<&str>,
    path: &str,
) -> Result<String, FileError> {
    let named = encoding.map(known).transpose()?;
    let marked = Encoding::for_bom(&bytes);
    let mark = marked.map_or(0, |(_, length)| length);
    let encoding = named.or(marked.map(|(marked, _)| marked)).unwrap_or(UTF_8);
    let not_text = |bytes: &[u8], kind| FileError::NotText {
        path: path.to_owned(),
        kind,
        size: bytes.len() as u64,
    };
    if encoding == UTF_8 {
        let text = String::from_utf8(bytes).map_err(|error| {
            let bytes = error.as_bytes();
            not_text(bytes, kind(bytes))
        })?;
        return Ok(match mark {
            0 => text,
            _ => text.get(mark..).unwrap_or_default().to_owned(),
        });
    }
    let content = bytes.get(mark..).unwrap_or_default();
    let (text, has_errors) = encoding.decode_without_bom_handling(content);
    match has_errors {
        true => Err(not_text(&bytes, "not text in this encoding")),
        false => Ok(text.into_owned()),
    }
}

fn known(name: &str) -> Result<&'static Encoding, FileError> {
    Encoding::for_label(name.as_bytes()).ok_or_else(|| FileError::Encoding {
        encoding: name.chars().take(ENCODING_CHARS).collect(),
    })
}

/// The kind of a content that is not UTF-8, as the end of a sentence.
fn kind(bytes: &[u8]) -> &'static str {
    match bytes {
        [b'P', b'K', 3 | 5, 4 | 6, ..] => "a ZIP archive or an office document, not text",
        [0x1f, 0x8b, ..] => "compressed with gzip, not text",
        [b'%', b'P', b'D', b'F', ..] => "a PDF document, not text",
        [0x7f, b'E', b'L', b'F', ..] => "a program, not text",
        _ if bytes.starts_with(b"SQLite format 3") => "an SQLite database, not text",
        _ if image_type(bytes).is_some() => "an image, not text",
        _ if bytes.contains(&0) => "binary data, not text",
        _ => "not text in UTF-8; read it with its `encoding`, such as windows-1252 or shift_jis",
    }
}

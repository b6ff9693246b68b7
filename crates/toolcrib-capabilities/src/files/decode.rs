//! Contents of files as text or as images.

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16LE};
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
        true => Err(not_text(&bytes, OTHER_ENCODING)),
        false => Ok(text.into_owned()),
    }
}

/// A decoder of a text that comes in pieces.
pub(super) struct Decoding {
    pub(super) decoder: Decoder,
    /// The kind of a content that it cannot decode; ends a sentence.
    pub(super) not_text: &'static str,
}

/// The decoder of a text that begins so, as [`text`] would decode it.
///
/// # Errors
/// [`FileError::Encoding`].
pub(super) fn decoding(start: &[u8], encoding: Option<&str>) -> Result<Decoding, FileError> {
    let named = encoding.map(known).transpose()?;
    let marked = Encoding::for_bom(start).map(|(encoding, _)| encoding);
    let encoding = named.or(marked).unwrap_or(UTF_8);
    let not_text = match encoding == UTF_8 {
        true => kind(start),
        false => OTHER_ENCODING,
    };
    Ok(Decoding { decoder: encoding.new_decoder_with_bom_removal(), not_text })
}

/// The kind of a content that is not text in the requested encoding.
const OTHER_ENCODING: &str = "not text in this encoding";

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

/// A text file that is edited: its text, and how that is encoded.
pub(super) struct TextFile {
    /// The text without its byte order mark.
    pub(super) text: String,
    form: Form,
}

/// An encoding that is written.
#[derive(Clone, Copy)]
enum Form {
    Utf8,
    Utf8Marked,
    Utf16Le,
    Utf16Be,
}

/// The byte order mark.
pub(super) const MARK: char = '\u{feff}';

impl TextFile {
    /// Reads UTF-8, or UTF-16 with a byte order mark. `None` for other contents.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let form = match Encoding::for_bom(bytes) {
            None => Form::Utf8,
            Some((encoding, _)) if encoding == UTF_8 => Form::Utf8Marked,
            Some((encoding, _)) if encoding == UTF_16LE => Form::Utf16Le,
            Some(_) => Form::Utf16Be,
        };
        Some(Self { text: text(bytes.to_vec(), None, "").ok()?, form })
    }

    /// A whole new text in the same encoding, with the same byte order mark, which the text may repeat.
    pub(super) fn encode_whole(&self, text: String) -> Vec<u8> {
        match self.form {
            Form::Utf8 => text.into_bytes(),
            _ => self.encode(text.trim_start_matches(MARK).to_owned()),
        }
    }

    /// Another text in the same encoding, with the same byte order mark.
    pub(super) fn encode(&self, text: String) -> Vec<u8> {
        let marked = || std::iter::once(MARK).chain(text.chars());
        let units = || {
            let mut buffer = [0; 2];
            marked().flat_map(move |c| c.encode_utf16(&mut buffer).to_vec())
        };
        match self.form {
            Form::Utf8 => text.into_bytes(),
            Form::Utf8Marked => marked().collect::<String>().into_bytes(),
            Form::Utf16Le => units().flat_map(u16::to_le_bytes).collect(),
            Form::Utf16Be => units().flat_map(u16::to_be_bytes).collect(),
        }
    }
}

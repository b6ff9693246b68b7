//! The forms of a secret to search for: bytes, before escapes and line breaks.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use super::SHORTEST_SECRET;

/// The bytes of one form of a secret.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) bytes: Box<[u8]>,
    /// The index of the secret among the known ones.
    pub(crate) secret: usize,
    /// Whether it is found in every escape and across line breaks; otherwise only in JSON escapes.
    pub(crate) in_all_escapes: bool,
    /// Whether letters match in either case, as in hexadecimal digits.
    pub(crate) ignores_case: bool,
    /// Whether one more character of base64 may carry its last bits.
    pub(crate) has_tail: bool,
}

impl Form {
    /// Whether the form has these bytes at a position.
    #[inline]
    pub(crate) fn has(&self, at: usize, bytes: &[u8]) -> bool {
        let Some(wanted) = self.bytes.get(at..at + bytes.len()) else { return false };
        wanted == bytes || (self.ignores_case && wanted.eq_ignore_ascii_case(bytes))
    }
}

/// Separators between the bytes of a hexadecimal dump.
const SEPARATORS: [&str; 4] = ["", ":", " ", "-"];

/// Adds the forms of a secret: its text without surrounding whitespace, and each of its lines that
/// is long enough; for those with 8 characters or more also base64 and hexadecimal digits.
pub(crate) fn add_forms(secret: usize, text: &str, forms: &mut Vec<Form>) {
    let trimmed = text.trim();
    let is_long = |text: &&str| text.chars().count() >= SHORTEST_SECRET;
    let lines = trimmed.lines().map(str::trim).filter(is_long);
    let lines = lines.filter(|line| *line != trimmed);
    let first = forms.len();
    for value in [trimmed].into_iter().chain(lines) {
        let in_all_escapes = is_long(&value);
        let mut add = |bytes: &[u8], ignores_case, has_tail| {
            let form = Form { bytes: bytes.into(), secret, in_all_escapes, ignores_case, has_tail };
            let known = forms.get(first..).unwrap_or_default();
            let is_same =
                |known: &Form| known.bytes == form.bytes && (known.ignores_case || !ignores_case);
            if !known.iter().any(is_same) {
                forms.push(form);
            }
        };
        add(&joined(value), false, false);
        if !in_all_escapes {
            continue;
        }
        // Forms encode a space as `+`.
        if value.contains(' ') {
            add(&joined(&value.replace(' ', "+")), false, false);
        }
        for shift in 0..3 {
            let (core, has_tail) = base64_core(value.as_bytes(), shift);
            add(core.as_bytes(), false, has_tail);
            add(core.replace('+', "-").replace('/', "_").as_bytes(), false, has_tail);
        }
        for separator in SEPARATORS {
            add(hex(value, separator).as_bytes(), true, false);
        }
    }
}

/// A text without its line breaks and the whitespace around them, which the search skips.
fn joined(text: &str) -> Vec<u8> {
    text.lines().map(str::trim).collect::<String>().into_bytes()
}

/// The characters of base64 that depend only on these bytes, when they begin at a position of this
/// remainder modulo three; and whether the next character contains bits of them.
fn base64_core(bytes: &[u8], shift: usize) -> (String, bool) {
    let mut shifted = vec![0; shift];
    shifted.extend_from_slice(bytes);
    let encoded = STANDARD_NO_PAD.encode(&shifted);
    let (first, end) = ((shift * 8).div_ceil(6), shifted.len() * 8 / 6);
    let core = encoded.get(first..end).unwrap_or_default().to_owned();
    (core, !(shifted.len() * 8).is_multiple_of(6))
}

fn hex(text: &str, separator: &str) -> String {
    let bytes: Vec<_> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(separator)
}

/// Whether a byte is in one of the base64 alphabets.
pub(crate) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

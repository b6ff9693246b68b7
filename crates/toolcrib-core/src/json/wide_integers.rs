//! Integers that do not fit 64 bits, in a text of JSON or JSON5.

/// The fewest digits of an integer that does not fit: those of -9223372036854775809.
const FEWEST_DIGITS: usize = 19;

/// The error for such an integer; a model reads it.
pub(crate) const CHANGED_INTEGER: &str =
    "an integer has more digits than fit 64 bits, and would change; pass it as a string";

/// Whether a text of JSON or JSON5 contains an integer that readers change: it does not fit 64 bits, and no
/// float is exactly that integer. Hexadecimal integers do not count; [`PlainJson::read`] checks this.
///
/// [`PlainJson::read`]: crate::__internal::PlainJson::read
#[must_use]
pub fn changes_integers(json: &[u8]) -> bool {
    if !has_long_integer(json) {
        return false;
    }
    let mut rest = json;
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'"' | b'\'' => after_string(after, *first),
            b'/' => after_comment(after),
            _ if is_of_word(*first) => {
                let length = rest.iter().take_while(|byte| is_of_word(**byte)).count();
                let (word, after) = rest.split_at(length);
                if is_changed(word) {
                    return true;
                }
                after
            }
            _ => after,
        };
    }
    false
}

/// Whether [`FEWEST_DIGITS`] digits are in a row, as in few texts. Such a row covers at least one byte of
/// those at this distance, so only these are read, and the bytes beside a digit.
fn has_long_integer(json: &[u8]) -> bool {
    (FEWEST_DIGITS - 1..json.len()).step_by(FEWEST_DIGITS).any(|at| {
        let (before, from) = json.split_at(at);
        let from = digits(from.iter());
        from > 0 && from + digits(before.iter().rev()) >= FEWEST_DIGITS
    })
}

/// The digits at the beginning, at most [`FEWEST_DIGITS`].
fn digits<'a>(bytes: impl Iterator<Item = &'a u8>) -> usize {
    bytes.take(FEWEST_DIGITS).take_while(|byte| byte.is_ascii_digit()).count()
}

/// Numbers with their signs, and names without quotes, which may contain digits.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_' | b'$') || byte >= 0x80
}

fn after_string(mut rest: &[u8], quote: u8) -> &[u8] {
    while let Some((byte, after)) = rest.split_first() {
        rest = match byte {
            b'\\' => after.get(1..).unwrap_or_default(),
            _ if *byte == quote => return after,
            _ => after,
        };
    }
    rest
}

/// JSON has no comments, but JSON5 has.
fn after_comment(rest: &[u8]) -> &[u8] {
    let end: &[u8] = match rest.first() {
        Some(b'/') => b"\n",
        Some(b'*') => b"*/",
        _ => return rest,
    };
    let rest = rest.get(1..).unwrap_or_default();
    let at = rest.windows(end.len()).position(|window| window == end);
    at.and_then(|at| rest.get(at + end.len()..)).unwrap_or_default()
}

fn is_changed(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word);
    if digits.len() < FEWEST_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let (Ok(word), Ok(digits)) = (str::from_utf8(word), str::from_utf8(digits)) else {
        return false;
    };
    if word.parse::<i64>().is_ok() || word.parse::<u64>().is_ok() {
        return false;
    }
    let float = digits.parse::<f64>().unwrap_or(f64::INFINITY);
    // One beyond all floats is refused where it is read.
    float.is_finite() && format!("{float:.0}") != digits.trim_start_matches('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_no_number_is_exactly_are_found_and_nothing_else() {
        for json in [
            "18446744073709551617",
            "-9223372036854775809",
            r#"{"a": [1, {"b": 123456789012345678901234567890}]}"#,
            r#"{"a": "\"", "b": 100000000000000000001}"#,
            "{a: /* \" */ +100000000000000000001}",
            "// '\n{a: 100000000000000000001}",
            "[18446744073709551615,18446744073709551617]",
        ] {
            assert!(changes_integers(json.as_bytes()), "{json}");
        }
        for json in [
            "",
            "18446744073709551615",
            "-9223372036854775808",
            "100000000000000000000",
            "1e30",
            "0.1234567890123456789012345",
            "123456789012345678901234567890.0",
            r#"{"18446744073709551617": "18446744073709551617 \" 18446744073709551617"}"#,
            "{a18446744073709551617: '18446744073709551617'}",
            "{a: 1 /* 18446744073709551617 */} // 18446744073709551617",
        ] {
            assert!(!changes_integers(json.as_bytes()), "{json}");
        }
        let digits = "98765432109876543211";
        for begin in 0..=2 * digits.len() {
            for end in 0..=digits.len() {
                let json = format!("[{}{digits}{}]", " ".repeat(begin), " ".repeat(end));
                assert!(changes_integers(json.as_bytes()), "{json}");
                assert!(
                    !changes_integers(json.replace(digits, &digits[..18]).as_bytes()),
                    "{json}"
                );
            }
        }
    }
}

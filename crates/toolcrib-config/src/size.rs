//! Sizes in bytes with units.

use std::fmt;

const UNITS: [(&str, u64); 3] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// A number of bytes; prints in the largest unit in which it is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, bytes): &&(&str, u64)| self.0 > 0 && self.0.is_multiple_of(*bytes);
        match UNITS.iter().rfind(whole) {
            Some((unit, bytes)) => write!(f, "{}{unit}", self.0 / bytes),
            None if self.0 == 1 => f.write_str("1 byte"),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// The number of bytes of a text such as `64KiB`; `None` if it exceeds 64 bits.
///
/// # Errors
/// The reason why the text is not a size, as the end of a sentence about it.
pub(crate) fn parse(text: &str) -> Result<Option<u64>, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.is_empty() {
        return Err("is not a size: it does not begin with a whole number".to_owned());
    }
    let unit = unit.trim();
    let bytes = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, bytes)) => *bytes,
        None if unit.is_empty() => return Err("is not a size: it has no unit".to_owned()),
        None => {
            return Err(format!("is not a size: unknown unit `{}`", unit.escape_debug()));
        }
    };
    // Digits alone fail to parse only if there are too many of them.
    Ok(digits.parse::<u64>().ok().and_then(|count| count.checked_mul(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_whole_number_and_a_unit() {
        assert_eq!(parse("64KiB"), Ok(Some(65_536)));
        assert_eq!(parse("1 MiB"), Ok(Some(1_048_576)));
        assert_eq!(parse("2GiB"), Ok(Some(2_147_483_648)));
        assert_eq!(parse("99999999999999999999GiB"), Ok(None));
        assert_eq!(parse("18446744073709551615GiB"), Ok(None));
        for (text, problem) in [
            ("", "does not begin with a whole number"),
            ("-1KiB", "does not begin with a whole number"),
            ("1024", "it has no unit"),
            ("1.5MiB", "unknown unit `.5MiB`"),
            ("64KB", "unknown unit `KB`"),
        ] {
            assert!(parse(text).unwrap_err().ends_with(problem), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn a_size_prints_in_the_largest_unit_that_fits() {
        let printed = [0, 1, 1000, 1024, 1536, 1 << 20, 3 << 30].map(|size| Size(size).to_string());
        assert_eq!(
            printed,
            ["0 bytes", "1 byte", "1000 bytes", "1KiB", "1536 bytes", "1MiB", "3GiB"]
        );
    }
}

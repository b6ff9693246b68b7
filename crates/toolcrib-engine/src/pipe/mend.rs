//! Rewrites a model's almost-JSON as JSON. Only syntax changes: quotes, commas, comments, the form of a
//! number, a fence around the whole. The characters of a string never change, so an escape that JSON
//! does not define is refused, with its place and the correct spelling.

use std::ops::Range;

/// The mark around a block of code.
const FENCE: &str = "```";

/// JSON, and the places of its tokens in the original text.
pub(super) struct MendedJson {
    /// On one line: line breaks are blanks, or escaped in strings.
    pub(super) json: String,
    /// The offset of each token in the JSON, and in the original text.
    tokens: Vec<(usize, usize)>,
}

/// A part of a text that is not JSON, or has more than one reading.
#[derive(Debug)]
pub(super) struct UnclearPart {
    /// Its offset in the text.
    pub(super) at: usize,
    /// The problem and the correct spelling. Quotes at most one character of the text.
    pub(super) problem: String,
}

impl MendedJson {
    /// Rewrites a text. Its grammar is not checked: the reader of the result does that.
    ///
    /// # Errors
    /// The first unclear part.
    pub(super) fn of(text: &str) -> Result<Self, UnclearPart> {
        let Range { start, end } = inside_fence(text);
        let inside = text.get(..end).unwrap_or_default();
        let json = String::with_capacity(inside.len() + 16);
        let mended = Self { json, tokens: Vec::new() };
        let (before, has_comma) = (Before::Other, false);
        let mut mender = Mender { text: inside, at: start, mended, before, has_comma };
        while let Some(c) = mender.peek() {
            mender.token(c)?;
        }
        mender.write_comma();
        Ok(mender.mended)
    }

    /// The offset in the original text of the token at this offset of the JSON.
    pub(super) fn original(&self, at: usize) -> usize {
        let after = self.tokens.partition_point(|(mended, _)| *mended <= at);
        self.tokens.get(after.saturating_sub(1)).map_or(0, |(_, original)| *original)
    }
}

/// The part of a text within the fence around the whole, if there is one.
fn inside_fence(text: &str) -> Range<usize> {
    let start = text.len() - text.trim_start().len();
    let whole = start..text.trim_end().len();
    let trimmed = text.get(whole.clone()).unwrap_or_default();
    let Some(inside) = trimmed.strip_prefix(FENCE).and_then(|rest| rest.strip_suffix(FENCE)) else {
        return whole;
    };
    // The name of a language, such as `json`.
    let named = inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    whole.end - FENCE.len() - named.len()..whole.end - FENCE.len()
}

/// The token before the current one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A value, or the end of one.
    Value,
    /// After which an object's key may come.
    OpenOrComma,
    Other,
}

struct Mender<'t> {
    text: &'t str,
    at: usize,
    mended: MendedJson,
    before: Before,
    /// Whether a comma after a value waits for the next token: it is dropped before a bracket.
    has_comma: bool,
}

impl Mender<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn token(&mut self, c: char) -> Result<(), UnclearPart> {
        if is_blank(c) || c == '/' {
            // Without a blank, the tokens around a comment would be one.
            if !self.has_comma {
                self.mended.json.push(' ');
            }
            return self.skip_blanks();
        }
        if c == ',' && self.before == Before::Value && !self.has_comma {
            self.at += 1;
            self.has_comma = true;
            self.before = Before::OpenOrComma;
            return Ok(());
        }
        if matches!(c, '}' | ']') {
            self.has_comma = false;
        }
        self.write_comma();
        self.mended.tokens.push((self.mended.json.len(), self.at));
        let before = match c {
            '{' | '[' | ',' => Before::OpenOrComma,
            ':' => Before::Other,
            '}' | ']' => Before::Value,
            '"' | '\'' => {
                self.string(c)?;
                Before::Value
            }
            c if is_of_word(c) => {
                self.word()?;
                Before::Value
            }
            _ => return Err(self.unclear(self.at, "this is not JSON; a text is in double quotes")),
        };
        if matches!(c, '{' | '[' | ',' | ':' | '}' | ']') {
            self.at += 1;
            self.mended.json.push(c);
        }
        self.before = before;
        Ok(())
    }

    fn write_comma(&mut self) {
        if std::mem::take(&mut self.has_comma) {
            self.mended.json.push(',');
        }
    }

    fn unclear(&self, at: usize, problem: impl Into<String>) -> UnclearPart {
        UnclearPart { at, problem: problem.into() }
    }

    /// Skips blanks and comments.
    fn skip_blanks(&mut self) -> Result<(), UnclearPart> {
        while let Some(c) = self.peek() {
            if is_blank(c) {
                self.at += c.len_utf8();
                continue;
            }
            let (ends, after): (fn(&str) -> Option<usize>, usize) = match self.rest().get(..2) {
                Some("//") => (|rest| rest.find(['\n', '\r', '\u{2028}', '\u{2029}']), 0),
                Some("/*") => (|rest| rest.find("*/"), 2),
                _ if c == '/' => return Err(self.unclear(self.at, "a `/` outside of a text")),
                _ => return Ok(()),
            };
            let inside = self.rest().get(2..).unwrap_or_default();
            self.at = match ends(inside) {
                Some(length) => self.at + 2 + length + after,
                None if after > 0 => return Err(self.unclear(self.at, "this comment has no end")),
                None => self.text.len(),
            };
        }
        Ok(())
    }

    /// Copies a string, in double quotes.
    fn string(&mut self, quote: char) -> Result<(), UnclearPart> {
        let began = self.at;
        self.at += 1;
        self.mended.json.push('"');
        loop {
            let at = self.at;
            match self.next() {
                None => return Err(self.unclear(began, "this text has no end")),
                Some(c) if c == quote => break,
                Some('\\') => self.escape(at, quote)?,
                Some('"') => self.mended.json.push_str("\\\""),
                Some('\n') => self.mended.json.push_str("\\n"),
                Some('\r') => self.mended.json.push_str("\\r"),
                Some('\t') => self.mended.json.push_str("\\t"),
                Some(c) if c < ' ' => {
                    self.mended.json.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                Some(c) => self.mended.json.push(c),
            }
        }
        self.mended.json.push('"');
        Ok(())
    }

    /// Copies an escape whose backslash is at `at`.
    fn escape(&mut self, at: usize, quote: char) -> Result<(), UnclearPart> {
        match self.next() {
            Some(c @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
                self.mended.json.extend(['\\', c]);
            }
            Some('u') => {
                let units = utf16_units(self.text.get(at..).unwrap_or_default());
                let Some(length) = units else {
                    let problem = "`\\u` needs four hexadecimal digits, and a character above `\\uffff` \
                                   both halves of its surrogate pair; for a backslash write `\\\\`";
                    return Err(self.unclear(at, problem));
                };
                self.mended.json.push_str(self.text.get(at..at + length).unwrap_or_default());
                self.at = at + length;
            }
            // Within single quotes, it is a quote.
            Some('\'') if quote == '\'' => self.mended.json.push('\''),
            Some(c) => {
                let escape = match c {
                    c if c.is_ascii_graphic() => format!("escape `\\{c}`"),
                    _ => "backslash before this character".to_owned(),
                };
                let problem = format!(
                    "JSON has no {escape}; write `\\\\` for a backslash, and a control character as \
                     `\\n` or `\\u` with four hexadecimal digits"
                );
                return Err(self.unclear(at, problem));
            }
            None => return Err(self.unclear(at, "this text has no end")),
        }
        Ok(())
    }

    /// Writes a key without quotes in quotes; copies a literal or a number.
    fn word(&mut self) -> Result<(), UnclearPart> {
        let began = self.at;
        let rest = self.rest();
        let word = rest.split(|c| !is_of_word(c)).next().unwrap_or_default().to_owned();
        self.at += word.len();
        let may_be_key = self.before == Before::OpenOrComma
            && !word.starts_with(|c: char| c.is_numeric())
            && !word.contains(['+', '-', '.']);
        if may_be_key {
            let end = self.at;
            self.skip_blanks()?;
            let is_key = self.peek() == Some(':');
            self.at = end;
            if is_key {
                self.mended.json.extend(["\"", &word, "\""]);
                return Ok(());
            }
        }
        let problem = match &*word {
            "true" | "false" | "null" => {
                self.mended.json.push_str(&word);
                return Ok(());
            }
            "True" | "TRUE" => "write `true`",
            "False" | "FALSE" => "write `false`",
            "None" | "undefined" | "nil" | "NULL" => "write `null`, or leave it out",
            _ if word.trim_start_matches(['+', '-']).starts_with("Infinity") || word == "NaN" => {
                "JSON has no such number"
            }
            _ => match number(&word) {
                Some(number) => {
                    self.mended.json.push_str(&number);
                    return Ok(());
                }
                None if word.starts_with(|c: char| c.is_numeric() || "+-.".contains(c)) => {
                    "this is not a number of JSON; a text is in double quotes"
                }
                None => "this is not JSON; a text is in double quotes",
            },
        };
        Err(self.unclear(began, problem))
    }
}

/// Blanks of JSON5, and the byte order mark.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// Characters of keys without quotes, literals and numbers.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '+' | '-' | '.')
}

/// The length of the escape of one character at the beginning: `\u0041`, or both halves of a surrogate
/// pair.
fn utf16_units(text: &str) -> Option<usize> {
    let unit = |at: usize| {
        let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        are_digits.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    };
    match unit(0)? {
        0xd800..=0xdbff => matches!(unit(6)?, 0xdc00..=0xdfff).then_some(12),
        0xdc00..=0xdfff => None,
        _ => Some(6),
    }
}

/// A number of JSON5 in the form of JSON: with digits before and after the point, without a plus and
/// in decimal digits. `None` if it has no form, or might be octal.
fn number(word: &str) -> Option<String> {
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        let is_hex = hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        let value = is_hex.then(|| u64::from_str_radix(hex, 16).ok()).flatten()?;
        return Some(format!("{sign}{value}"));
    }
    let (digits, exponent) = digits.split_at(digits.find(['e', 'E']).unwrap_or(digits.len()));
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits, None),
    };
    let are_digits = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
    let is_number = are_digits(whole)
        && fraction.is_none_or(are_digits)
        && !(whole.is_empty() && fraction.is_none_or(str::is_empty))
        && !(whole.len() > 1 && whole.starts_with('0'));
    if !is_number {
        return None;
    }
    let or_zero = |part: &str| if part.is_empty() { "0".to_owned() } else { part.to_owned() };
    let fraction = fraction.map(|part| format!(".{}", or_zero(part))).unwrap_or_default();
    Some(format!("{sign}{}{fraction}{exponent}", or_zero(whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(text: &str) -> Option<String> {
        MendedJson::of(text).ok().map(|mended| mended.json)
    }

    #[test]
    fn syntax_is_rewritten() {
        let texts = [
            ("{a: 1, 'b': [2,],}", r#"{"a": 1,"b": [2]}"#),
            ("```json\n{\"a\": 1}\n```", r#" {"a": 1} "#),
            (" ```{a:1}``` \n", r#"{"a":1}"#),
            ("\u{feff}{\"a\":\u{a0}1}", " {\"a\": 1}"),
            ("{a: 1 // one, [\n, /* } */ b: 2}", r#"{"a": 1 ,"b": 2}"#),
            ("{true: null, $_é1: false}", r#"{"true": null,"$_é1": false}"#),
            (r#"{'it\'s': 'a "b" \n \\ \u00e9'}"#, r#"{"it's": "a \"b\" \n \\ \u00e9"}"#),
            ("{\"a\": \"1\r\n\t2\u{1}\u{2028}\"}", "{\"a\": \"1\\r\\n\\t2\\u0001\u{2028}\"}"),
            (r#"{"a": "// no, } comment"}"#, r#"{"a": "// no, } comment"}"#),
            ("[+1, .5, -.5, 5., 5.e3, 0x1F, -0x10, 1E+2]", "[1,0.5,-0.5,5.0,5.0e3,31,-16,1E+2]"),
        ];
        for (text, expected) in texts {
            assert_eq!(mended(text).as_deref(), Some(expected), "{text}");
        }
    }

    /// Dropping what is between tokens must not join them, and only a comma after a value is dropped.
    #[test]
    fn what_is_wrong_in_any_reading_stays_wrong() {
        let texts = [
            ("{a: 1/**/2}", r#"{"a": 1 2}"#),
            ("[,]", "[,]"),
            ("[1,,]", "[1,,]"),
            ("[1,,2]", "[1,,2]"),
            ("{,}", "{,}"),
            ("{a:,}", r#"{"a":,}"#),
            ("{a:1},", r#"{"a":1},"#),
            ("'a''b'", r#""a""b""#),
        ];
        for (text, expected) in texts {
            let result = mended(text).expect(text);
            assert!(serde_json::from_str::<serde_json::Value>(&result).is_err(), "{text}");
            assert_eq!(result, expected, "{text}");
        }
    }

    #[test]
    fn unclear_parts_are_refused_where_they_are() {
        let texts = [
            (r#"{"a": "\d"}"#, 7),
            (r#"{"a": "it\'s"}"#, 9),
            (r#"{'a': '\x41'}"#, 7),
            (r#"{'a': '\v'}"#, 7),
            (r#"{'a': '\0'}"#, 7),
            ("{'a': 'b\\\nc'}", 8),
            (r#"{"a": "\ud800"}"#, 7),
            (r#"{"a": "\ud800\u0041"}"#, 7),
            (r#"{"a": "\udc00"}"#, 7),
            (r#"{"a": "\u{41}"}"#, 7),
            (r#"{"a": "\u+041"}"#, 7),
            (r#"{"a": "\u12é"}"#, 7),
            (r"{\u0061: 1}", 1),
            ("```json\n{\"a\": \"\\d\"}\n```", 15),
            ("{a: True}", 4),
            ("{a: NaN}", 4),
            ("{a: -Infinity}", 4),
            ("{a: 010}", 4),
            ("{a: 1_000}", 4),
            ("{a: 0x1ffffffffffffffff}", 4),
            ("{a: 0x}", 4),
            ("{a: 0x+1}", 4),
            ("{a: .}", 4),
            ("{a: b}", 4),
            ("{a: \"b", 4),
            ("{a: 1 /* }", 6),
            ("{a: `b`}", 4),
            ("{\"a\": 1} # no", 9),
            ("{“a”: 1}", 1),
        ];
        for (text, at) in texts {
            let unclear = MendedJson::of(text).map(|mended| mended.json).expect_err(text);
            assert_eq!(unclear.at, at, "{text}: {}", unclear.problem);
        }
    }
}

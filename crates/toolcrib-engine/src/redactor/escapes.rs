//! Escapes: one character of a secret as URLs, JSON and other languages, HTML and quoted-printable
//! mail write it.

/// What an escape stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// So many of these bytes of UTF-8, and where the escape ends.
    Stands([u8; 4], usize, usize),
    /// The text ends before the escape does.
    Cut,
}

impl Escape {
    /// The bytes that it stands for, and where it ends.
    pub(super) fn parts(&self) -> Option<(&[u8], usize)> {
        match self {
            Self::Stands(bytes, count, end) => Some((bytes.get(..*count)?, *end)),
            Self::Cut => None,
        }
    }
}

/// How deep escapes of escapes are read: `%252F` is `/` escaped twice.
const DEPTH: usize = 2;

/// The most backslashes that begin one escape: eight are JSON in JSON in JSON.
const MOST_BACKSLASHES: usize = 8;

/// The longest name or number between `&` and `;`.
const LONGEST_ENTITY: usize = 16;

/// Whether a byte may begin an escape.
pub(super) fn begins_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&' | b'=')
}

/// Each way to read an escape at this position.
pub(super) fn escapes(text: &[u8], at: usize, each: &mut dyn FnMut(Escape)) {
    match text.get(at) {
        Some(first) if begins_escape(*first) => nested(*first, text, at + 1, DEPTH, each),
        _ => {}
    }
}

/// The ways in which JSON escapes a character at this position.
pub(super) fn json_escapes(text: &[u8], at: usize, each: &mut dyn FnMut(Escape)) {
    if text.get(at) == Some(&b'\\') {
        after_backslash(text, at + 1, each);
    }
}

/// What an escape stands for whose first character ends here, and, where that begins an escape, what
/// the inner one stands for.
fn nested(first: u8, text: &[u8], at: usize, depth: usize, each: &mut dyn FnMut(Escape)) {
    after(first, text, at, &mut |escape| {
        each(escape);
        if let Some(([inner], end)) = escape.parts()
            && begins_escape(*inner)
            && let Some(depth) = depth.checked_sub(1)
        {
            nested(*inner, text, end, depth, each);
        }
    });
}

fn after(first: u8, text: &[u8], at: usize, each: &mut dyn FnMut(Escape)) {
    match first {
        b'%' | b'=' => match number(text, at, 2, 16) {
            Number::Is(byte) => each(of_byte(byte, at + 2)),
            Number::Cut => each(Escape::Cut),
            Number::None => {}
        },
        b'\\' => after_backslash(text, at, each),
        _ => entity(text, at, each),
    }
}

fn after_backslash(text: &[u8], at: usize, each: &mut dyn FnMut(Escape)) {
    let rest = text.get(at..).unwrap_or_default();
    let more = rest.iter().take(MOST_BACKSLASHES).take_while(|byte| **byte == b'\\').count();
    // Escaped again and again, a backslash is two of them, then four, then eight.
    for count in [2, 4, 8].into_iter().filter(|count| *count <= more + 1) {
        each(of_char('\\', at + count - 1));
    }
    let at = at + more;
    let Some(&kind) = text.get(at) else { return each(Escape::Cut) };
    let at = at + 1;
    match kind {
        b'u' if text.get(at) == Some(&b'{') => braced(text, at + 1, each),
        b'u' => utf16(text, at, each),
        b'U' => numbered(text, at, 8, each),
        b'x' => match number(text, at, 2, 16) {
            Number::Is(byte) => {
                each(of_byte(byte, at + 2));
                // Some languages mean a character, others a byte.
                if byte > 0x7f {
                    char::from_u32(byte).into_iter().for_each(|c| each(of_char(c, at + 2)));
                }
            }
            Number::Cut => each(Escape::Cut),
            Number::None => {}
        },
        b'n' => each(of_char('\n', at)),
        b'r' => each(of_char('\r', at)),
        b't' => each(of_char('\t', at)),
        b'b' => each(of_char('\u{8}', at)),
        b'f' => each(of_char('\u{c}', at)),
        sign if sign.is_ascii_punctuation() && sign != b'\\' => {
            each(of_char(char::from(sign), at));
        }
        _ => {}
    }
}

/// `\u{1f600}` behind its brace.
fn braced(text: &[u8], at: usize, each: &mut dyn FnMut(Escape)) {
    let rest = text.get(at..).unwrap_or_default();
    let digits = rest.iter().take(6).take_while(|byte| byte.is_ascii_hexdigit()).count();
    match (rest.get(digits), number(text, at, digits, 16)) {
        (Some(b'}'), Number::Is(number)) => {
            let c = char::from_u32(number).into_iter();
            c.for_each(|c| each(of_char(c, at + digits + 1)));
        }
        (None, _) => each(Escape::Cut),
        _ => {}
    }
}

/// `\u00e4` behind its letter, or two of them that are one character.
fn utf16(text: &[u8], at: usize, each: &mut dyn FnMut(Escape)) {
    let Number::Is(high @ 0xd800..=0xdbff) = number(text, at, 4, 16) else {
        return numbered(text, at, 4, each);
    };
    let rest = text.get(at + 4..).unwrap_or_default();
    let slashes = rest.iter().take(MOST_BACKSLASHES).take_while(|byte| **byte == b'\\').count();
    let low = at + 4 + slashes + 1;
    match rest.get(slashes) {
        Some(b'u') if slashes > 0 => match number(text, low, 4, 16) {
            Number::Is(unit @ 0xdc00..=0xdfff) => {
                let c = char::from_u32(0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
                c.into_iter().for_each(|c| each(of_char(c, low + 4)));
            }
            Number::Cut => each(Escape::Cut),
            _ => {}
        },
        None => each(Escape::Cut),
        Some(_) => {}
    }
}

/// A character by its number, of so many hexadecimal digits.
fn numbered(text: &[u8], at: usize, digits: usize, each: &mut dyn FnMut(Escape)) {
    match number(text, at, digits, 16) {
        Number::Is(number) => {
            char::from_u32(number).into_iter().for_each(|c| each(of_char(c, at + digits)));
        }
        Number::Cut => each(Escape::Cut),
        Number::None => {}
    }
}

/// A character of HTML after its `&`. Forms that post HTML percent-encode its `#` and `;`.
fn entity(text: &[u8], at: usize, each: &mut dyn FnMut(Escape)) {
    let (mut name, mut end) = (Vec::with_capacity(LONGEST_ENTITY), at);
    let end = loop {
        let rest = text.get(end..).unwrap_or_default();
        let (sign, width) = match rest {
            [] | [b'%'] | [b'%', _] => return each(Escape::Cut),
            [b'%', b'2', b'3', ..] => (b'#', 3),
            [b'%', b'3', b'b' | b'B', ..] => (b';', 3),
            [sign, ..] => (*sign, 1),
        };
        end += width;
        match sign {
            b';' => break end,
            b'#' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' if name.len() < LONGEST_ENTITY => {
                name.push(sign);
            }
            _ => return,
        }
    };
    let name = name.as_slice();
    let c = match name {
        [b'#', b'x' | b'X', digits @ ..] => match number(digits, 0, digits.len(), 16) {
            Number::Is(number) => char::from_u32(number),
            _ => None,
        },
        [b'#', digits @ ..] => match number(digits, 0, digits.len(), 10) {
            Number::Is(number) => char::from_u32(number),
            _ => None,
        },
        name => named(name),
    };
    c.into_iter().for_each(|c| each(of_char(c, end)));
}

/// The sign of ASCII that HTML has this name for.
fn named(name: &[u8]) -> Option<char> {
    Some(match name {
        b"amp" | b"AMP" => '&',
        b"lt" | b"LT" => '<',
        b"gt" | b"GT" => '>',
        b"quot" | b"QUOT" => '"',
        b"apos" => '\'',
        b"nbsp" => ' ',
        b"Tab" => '\t',
        b"NewLine" => '\n',
        b"excl" => '!',
        b"num" => '#',
        b"dollar" => '$',
        b"percnt" => '%',
        b"lpar" => '(',
        b"rpar" => ')',
        b"ast" | b"midast" => '*',
        b"plus" => '+',
        b"comma" => ',',
        b"period" => '.',
        b"sol" => '/',
        b"colon" => ':',
        b"semi" => ';',
        b"equals" => '=',
        b"quest" => '?',
        b"commat" => '@',
        b"lsqb" | b"lbrack" => '[',
        b"bsol" => '\\',
        b"rsqb" | b"rbrack" => ']',
        b"Hat" => '^',
        b"lowbar" | b"UnderBar" => '_',
        b"grave" | b"DiacriticalGrave" => '`',
        b"lcub" | b"lbrace" => '{',
        b"vert" | b"verbar" | b"VerticalLine" => '|',
        b"rcub" | b"rbrace" => '}',
        _ => return None,
    })
}

enum Number {
    Is(u32),
    /// The text ends before all digits.
    Cut,
    None,
}

fn number(text: &[u8], at: usize, digits: usize, radix: u32) -> Number {
    let rest = text.get(at..).unwrap_or_default();
    let found = rest.get(..digits.min(rest.len())).unwrap_or_default();
    let value = found.iter().try_fold(0_u32, |value, byte| {
        value.checked_mul(radix)?.checked_add(char::from(*byte).to_digit(radix)?)
    });
    match value {
        Some(_) if found.len() < digits => Number::Cut,
        Some(value) if digits > 0 => Number::Is(value),
        _ => Number::None,
    }
}

fn of_byte(byte: u32, end: usize) -> Escape {
    Escape::Stands([u8::try_from(byte).unwrap_or_default(), 0, 0, 0], 1, end)
}

fn of_char(c: char, end: usize) -> Escape {
    let mut bytes = [0; 4];
    let count = c.encode_utf8(&mut bytes).len();
    Escape::Stands(bytes, count, end)
}

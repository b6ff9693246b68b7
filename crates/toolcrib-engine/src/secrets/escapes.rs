//! Escapes: the encodings of one character of a secret in URLs, JSON and other languages, HTML and
//! quoted-printable mail.

/// The meaning of an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    /// The decoded UTF-8 bytes, how many there are, and the end of the escape.
    Stands([u8; 4], usize, usize),
    /// The text ends before the escape does.
    Cut,
}

/// How many readings a possible escape has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ways {
    None,
    One(Escape),
    Many,
}

impl Escape {
    /// The decoded bytes, and the end of the escape.
    pub(crate) fn parts(&self) -> Option<(&[u8], usize)> {
        match self {
            Self::Stands(bytes, count, end) => Some((bytes.get(..*count)?, *end)),
            Self::Cut => None,
        }
    }
}

/// Maximum depth of nested escapes: `%252F` is `/` escaped twice.
const DEPTH: usize = 2;

/// The most backslashes that begin one escape: eight are JSON in JSON in JSON.
const MOST_BACKSLASHES: usize = 8;

/// Maximum length of a name or number between `&` and `;`.
const LONGEST_ENTITY: usize = 16;

/// Whether a byte may begin an escape.
pub(crate) fn begins_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&' | b'=')
}

/// Calls `each` with every reading of an escape at this position.
pub(crate) fn escapes(text: &[u8], at: usize, each: &mut dyn FnMut(Escape)) {
    match text.get(at) {
        Some(first) if begins_escape(*first) => nested(*first, text, at + 1, DEPTH, each),
        _ => {}
    }
}

/// Like [`escapes`]; cheaper if there is at most one reading.
pub(crate) fn only_escape(text: &[u8], at: usize) -> Ways {
    match text.get(at..).unwrap_or_default() {
        [b'\\', b'\\' | b'x', ..] => Ways::Many,
        [first, ..] if begins_escape(*first) => match alone(*first, text, at + 1) {
            None => Ways::None,
            Some(Escape::Stands([inner, ..], 1, _)) if begins_escape(inner) => Ways::Many,
            Some(escape) => Ways::One(escape),
        },
        _ => Ways::None,
    }
}

/// The character number of a usual escape, `%2f`, `=2f`, `\u002f` or `&lt;`, and its end.
#[inline]
pub(crate) fn usual_escape(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let (digits, end) = match text.get(at..)? {
        [b'%' | b'=', digits @ ..] => (digits.get(..2)?, at + 3),
        [b'\\', b'u', digits @ ..] => (digits.get(..4)?, at + 6),
        [b'&', b'a', b'm', b'p', b';', ..] => return Some((0x26, at + 5)),
        [b'&', b'l', b't', b';', ..] => return Some((0x3c, at + 4)),
        [b'&', b'g', b't', b';', ..] => return Some((0x3e, at + 4)),
        [b'&', b'q', b'u', b'o', b't', b';', ..] => return Some((0x22, at + 6)),
        [b'&', b'#', b'3', b'9', b';', ..] => return Some((0x27, at + 5)),
        _ => return None,
    };
    let number = digits.iter().try_fold(0, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' | b'A'..=b'F' => (digit & 7) + 9,
            _ => return None,
        };
        Some(number << 4 | usize::from(digit))
    });
    number.map(|number| (number, end))
}

/// The JSON escapes of a character at this position.
pub(crate) fn json_escapes(text: &[u8], at: usize, each: &mut dyn FnMut(Escape)) {
    if text.get(at) == Some(&b'\\') {
        after(b'\\', text, at + 1, each);
    }
}

/// The last of the consecutive backslashes that begin here, as far as an escape may reach, and
/// where to continue after all of them. For any other byte, that byte.
pub(crate) fn last_backslash(text: &[u8], at: usize) -> (usize, usize) {
    const FARTHEST: usize = MOST_BACKSLASHES * (DEPTH + 2);
    let rest = text.get(at..).unwrap_or_default();
    let count = rest.iter().take(FARTHEST).take_while(|byte| **byte == b'\\').count();
    match count {
        0 => (at, at + 1),
        // The part after them is read from the last ones.
        FARTHEST => (at, at + MOST_BACKSLASHES),
        count => (at + count - 1, at + count),
    }
}

/// The meaning of an escape whose first character ends here, and, if the result begins an escape,
/// the meaning of the inner one.
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

/// Each escape whose first character ends here.
fn after(first: u8, text: &[u8], at: usize, each: &mut dyn FnMut(Escape)) {
    let mut at = at;
    if first == b'\\' {
        let rest = text.get(at..).unwrap_or_default();
        let more = rest.iter().take(MOST_BACKSLASHES).take_while(|byte| **byte == b'\\').count();
        // Repeated escaping doubles a backslash: two, four, eight.
        for count in [2, 4, 8].into_iter().filter(|count| *count <= more + 1) {
            each(of_char('\\', at + count - 1));
        }
        at += more;
        // In some languages it is a character, in others a byte.
        if let (Some(b'x'), Number::Is(high @ 0x80..)) = (text.get(at), number(text, at + 1, 2, 16))
        {
            each(of_byte(high, at + 3));
        }
    }
    alone(first, text, at).into_iter().for_each(each);
}

/// The escape whose first character ends here, unless that is a backslash before another one.
fn alone(first: u8, text: &[u8], at: usize) -> Option<Escape> {
    match first {
        b'%' | b'=' => match number(text, at, 2, 16) {
            Number::Is(byte) => Some(of_byte(byte, at + 2)),
            Number::Cut => Some(Escape::Cut),
            Number::None => None,
        },
        b'\\' => after_backslash(text, at),
        _ => entity(text, at),
    }
}

fn after_backslash(text: &[u8], at: usize) -> Option<Escape> {
    let Some(&kind) = text.get(at) else { return Some(Escape::Cut) };
    let at = at + 1;
    match kind {
        b'\\' => None,
        b'u' if text.get(at) == Some(&b'{') => braced(text, at + 1),
        b'u' => utf16(text, at),
        b'U' => numbered(text, at, 8),
        b'x' => numbered(text, at, 2),
        b'n' => Some(of_byte(10, at)),
        b'r' => Some(of_byte(13, at)),
        b't' => Some(of_byte(9, at)),
        b'b' => Some(of_byte(8, at)),
        b'f' => Some(of_byte(12, at)),
        sign => sign.is_ascii_punctuation().then(|| of_byte(sign.into(), at)),
    }
}

/// `\u{1f600}` after its brace.
fn braced(text: &[u8], at: usize) -> Option<Escape> {
    let rest = text.get(at..).unwrap_or_default();
    let digits = rest.iter().take(6).take_while(|byte| byte.is_ascii_hexdigit()).count();
    match (rest.get(digits), number(text, at, digits, 16)) {
        (Some(b'}'), Number::Is(number)) => of_number(number, at + digits + 1),
        (None, _) => Some(Escape::Cut),
        _ => None,
    }
}

/// `\u00e4` after its letter, or a surrogate pair.
fn utf16(text: &[u8], at: usize) -> Option<Escape> {
    let Number::Is(high @ 0xd800..=0xdbff) = number(text, at, 4, 16) else {
        return numbered(text, at, 4);
    };
    let rest = text.get(at + 4..).unwrap_or_default();
    let slashes = rest.iter().take(MOST_BACKSLASHES).take_while(|byte| **byte == b'\\').count();
    let low = at + 4 + slashes + 1;
    match rest.get(slashes) {
        Some(b'u') if slashes > 0 => match number(text, low, 4, 16) {
            Number::Is(unit @ 0xdc00..=0xdfff) => {
                of_number(0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00), low + 4)
            }
            Number::Cut => Some(Escape::Cut),
            _ => None,
        },
        None => Some(Escape::Cut),
        Some(_) => None,
    }
}

/// A character by its number, with the given count of hexadecimal digits.
fn numbered(text: &[u8], at: usize, digits: usize) -> Option<Escape> {
    match number(text, at, digits, 16) {
        Number::Is(number) => of_number(number, at + digits),
        Number::Cut => Some(Escape::Cut),
        Number::None => None,
    }
}

/// An HTML entity after its `&`.
fn entity(text: &[u8], at: usize) -> Option<Escape> {
    let rest = text.get(at..).unwrap_or_default();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let length = rest.iter().take(LONGEST_ENTITY).take_while(|byte| is_name(byte)).count();
    match rest.get(length) {
        None => Some(Escape::Cut),
        Some(b';') => entity_of(rest.get(..length)?, at + length + 1),
        Some(b'%') => percent_entity(text, at),
        Some(_) => None,
    }
}

/// An HTML entity in a form post: with `#` and `;` percent-encoded.
fn percent_entity(text: &[u8], at: usize) -> Option<Escape> {
    let (mut name, mut length, mut end) = ([0; LONGEST_ENTITY], 0, at);
    loop {
        let (sign, width) = match text.get(end..).unwrap_or_default() {
            [] | [b'%'] | [b'%', _] => return Some(Escape::Cut),
            [b'%', b'2', b'3', ..] => (b'#', 3),
            [b'%', b'3', b'b' | b'B', ..] => (b';', 3),
            [sign, ..] => (*sign, 1),
        };
        end += width;
        match sign {
            b';' => return entity_of(name.get(..length)?, end),
            b'#' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => *name.get_mut(length)? = sign,
            _ => return None,
        }
        length += 1;
    }
}

fn entity_of(name: &[u8], end: usize) -> Option<Escape> {
    let number = match name {
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 0, digits.len(), 16),
        [b'#', digits @ ..] => number(digits, 0, digits.len(), 10),
        name => {
            let (_, sign) =
                NAMED.iter().find(|(known, _)| known.first() == name.first() && *known == name)?;
            return Some(of_byte(u32::from(*sign), end));
        }
    };
    match number {
        Number::Is(number) => of_number(number, end),
        _ => None,
    }
}

/// The ASCII signs whose HTML name begins with this byte.
pub(crate) fn named(first: u8) -> impl Iterator<Item = u8> {
    NAMED.iter().filter(move |(name, _)| name.first() == Some(&first)).map(|(_, sign)| *sign)
}

/// The ASCII signs with HTML names; the usual ones come first.
const NAMED: [(&[u8], u8); 46] = [
    (b"amp", b'&'),
    (b"nbsp", b' '),
    (b"quot", b'"'),
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"apos", b'\''),
    (b"AMP", b'&'),
    (b"LT", b'<'),
    (b"GT", b'>'),
    (b"QUOT", b'"'),
    (b"Tab", b'\t'),
    (b"NewLine", b'\n'),
    (b"excl", b'!'),
    (b"num", b'#'),
    (b"dollar", b'$'),
    (b"percnt", b'%'),
    (b"lpar", b'('),
    (b"rpar", b')'),
    (b"ast", b'*'),
    (b"midast", b'*'),
    (b"plus", b'+'),
    (b"comma", b','),
    (b"period", b'.'),
    (b"sol", b'/'),
    (b"colon", b':'),
    (b"semi", b';'),
    (b"equals", b'='),
    (b"quest", b'?'),
    (b"commat", b'@'),
    (b"lsqb", b'['),
    (b"lbrack", b'['),
    (b"bsol", b'\\'),
    (b"rsqb", b']'),
    (b"rbrack", b']'),
    (b"Hat", b'^'),
    (b"lowbar", b'_'),
    (b"UnderBar", b'_'),
    (b"grave", b'`'),
    (b"DiacriticalGrave", b'`'),
    (b"lcub", b'{'),
    (b"lbrace", b'{'),
    (b"vert", b'|'),
    (b"verbar", b'|'),
    (b"VerticalLine", b'|'),
    (b"rcub", b'}'),
    (b"rbrace", b'}'),
];

enum Number {
    Is(u32),
    /// The text ends before the last digit.
    Cut,
    None,
}

fn number(text: &[u8], at: usize, digits: usize, radix: u32) -> Number {
    let rest = text.get(at..).unwrap_or_default();
    let found = rest.get(..digits.min(rest.len())).unwrap_or_default();
    // At most sixteen digits.
    let value = found.iter().try_fold(0_u64, |value, byte| {
        Some(value * u64::from(radix) + u64::from(char::from(*byte).to_digit(radix)?))
    });
    match value.map(u32::try_from) {
        Some(_) if found.len() < digits => Number::Cut,
        Some(Ok(value)) if digits > 0 => Number::Is(value),
        _ => Number::None,
    }
}

fn of_byte(byte: u32, end: usize) -> Escape {
    Escape::Stands([u8::try_from(byte).unwrap_or_default(), 0, 0, 0], 1, end)
}

fn of_number(number: u32, end: usize) -> Option<Escape> {
    char::from_u32(number).map(|c| of_char(c, end))
}

fn of_char(c: char, end: usize) -> Escape {
    let mut bytes = [0; 4];
    let count = c.encode_utf8(&mut bytes).len();
    Escape::Stands(bytes, count, end)
}

//! Values: arguments as text, which the server parses, and cells, which are the server's text.

use serde_json::{Map, Number, Value, json};
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type, private::BytesMut, to_sql_checked};

type AnyError = Box<dyn std::error::Error + Sync + Send>;

/// An argument in PostgreSQL's text format; `None` is NULL.
#[derive(Debug)]
pub(super) struct Argument(Option<String>);

impl Argument {
    /// The argument for a parameter of a type.
    pub(super) fn new(value: &Value, kind: &Type) -> Self {
        Self(argument(value, kind))
    }
}

fn argument(value: &Value, kind: &Type) -> Option<String> {
    let is_json = [Type::JSON, Type::JSONB].contains(kind);
    match (value, kind.kind()) {
        (Value::Null, _) => None,
        (value, _) if is_json => Some(value.to_string()),
        (Value::Array(items), Kind::Array(item)) => {
            let items = items.iter().map(|value| element(value, item));
            Some(format!("{{{}}}", items.collect::<Vec<_>>().join(",")))
        }
        (value, Kind::Domain(base)) => argument(value, base),
        (Value::String(text), _) => Some(text.clone()),
        (Value::Number(number), _) => Some(whole(number).unwrap_or_else(|| number.to_string())),
        (value, _) => Some(value.to_string()),
    }
}

/// JSON Schema calls `5.0` a whole number as well, and PostgreSQL does not.
fn whole(number: &Number) -> Option<String> {
    let number = number.as_f64().filter(|_| number.is_f64())?;
    (number.fract() == 0.0 && number.abs() < 1e15).then(|| format!("{number:.0}"))
}

fn element(value: &Value, kind: &Type) -> String {
    match argument(value, kind) {
        None => "NULL".to_owned(),
        Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

impl ToSql for Argument {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, AnyError> {
        let Some(text) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// Reads cells, which have the server's text format, as JSON.
#[derive(Default)]
pub(super) struct Cells {
    /// Whether a part of a document of JSON, or the whole, became text: JSON values here would
    /// lose digits or members.
    pub(super) has_json_as_text: bool,
}

impl Cells {
    /// A cell of a type. Types that JSON has no form for are the server's text.
    pub(super) fn read(&mut self, kind: &Type, text: &str) -> Value {
        match (kind.kind(), kind) {
            (Kind::Domain(base), _) => self.read(base, text),
            (Kind::Array(item), &(Type::INT2_VECTOR | Type::OID_VECTOR)) => {
                text.split_ascii_whitespace().map(|text| self.read(item, text)).collect()
            }
            (Kind::Array(item), _) => self.array(item, text).unwrap_or_else(|| text.into()),
            (_, &Type::BOOL) => (text == "t").into(),
            (_, &Type::BYTEA) => json!({ "bytes": bytes(text) }),
            (_, &(Type::FLOAT4 | Type::FLOAT8)) => {
                let number = text.parse().ok().and_then(Number::from_f64);
                number.map_or_else(|| text.into(), Value::Number)
            }
            (_, &(Type::INT2 | Type::INT4 | Type::INT8 | Type::OID)) => {
                text.parse().map_or_else(|_| text.into(), |integer: i64| integer.into())
            }
            (_, &(Type::JSON | Type::JSONB)) => self.document(text),
            (_, &Type::TIMESTAMP) => text.replacen(' ', "T", 1).into(),
            (_, &Type::TIMESTAMPTZ) => in_utc(text).unwrap_or_else(|| text.to_owned()).into(),
            _ => text.into(),
        }
    }

    /// An array as a list; `None` for one with its own lower bounds, or with an unknown separator.
    fn array(&mut self, item: &Type, text: &str) -> Option<Value> {
        let base = match item.kind() {
            Kind::Domain(base) => base,
            _ => item,
        };
        let separator = match (base.kind(), base) {
            (_, &Type::BOX) => ';',
            // A type of an extension may have any.
            (Kind::Simple, base) => Type::from_oid(base.oid()).map(|_| ',')?,
            _ => ',',
        };
        let mut rest = text.strip_prefix('{')?;
        let list = self.list(item, separator, &mut rest)?;
        rest.is_empty().then_some(list)
    }

    /// The list after its opening brace; removes it from `rest`. The server permits six levels.
    fn list(&mut self, item: &Type, separator: char, rest: &mut &str) -> Option<Value> {
        let mut items = Vec::new();
        if let Some(after) = rest.strip_prefix('}') {
            *rest = after;
            return Some(items.into());
        }
        loop {
            items.push(if let Some(inner) = rest.strip_prefix('{') {
                *rest = inner;
                self.list(item, separator, rest)?
            } else if let Some(quoted) = rest.strip_prefix('"') {
                let (text, after) = unquoted(quoted)?;
                *rest = after;
                self.read(item, &text)
            } else {
                let (text, after) = rest.split_at(rest.find([separator, '}'])?);
                *rest = after;
                if text == "NULL" { Value::Null } else { self.read(item, text) }
            });
            if let Some(after) = rest.strip_prefix('}') {
                *rest = after;
                return Some(items.into());
            }
            *rest = rest.strip_prefix(separator)?;
        }
    }

    /// A document of JSON, with all digits and members: a part that a JSON value here cannot represent is text.
    fn document(&mut self, text: &str) -> Value {
        let kept = KeptDocument::of(text);
        match serde_json::from_str::<Value>(&kept.text) {
            Ok(value) if members(&value) == kept.members => {
                self.has_json_as_text |= kept.has_numbers_as_text;
                value
            }
            // Two members of one name, too many levels, or half a surrogate pair.
            _ => {
                self.has_json_as_text = true;
                text.into()
            }
        }
    }
}

/// The number of bytes of `\x00ff`.
pub(super) fn bytes(text: &str) -> usize {
    text.len().saturating_sub(2) / 2
}

/// A string up to its closing quote, and the text after it.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((text, quoted.get(at + 1..)?)),
            '\\' => text.push(chars.next()?.1),
            _ => text.push(c),
        }
    }
    None
}

/// A valid document of JSON whose numbers have quotes if a JSON value here would round them.
struct KeptDocument {
    text: String,
    members: usize,
    has_numbers_as_text: bool,
}

impl KeptDocument {
    fn of(document: &str) -> Self {
        let text = String::with_capacity(document.len());
        let mut kept = Self { text, members: 0, has_numbers_as_text: false };
        let mut rest = document;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '"' => string_length(rest),
                '-' | '0'..='9' => {
                    let is_other = |c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
                    rest.find(is_other).unwrap_or(rest.len())
                }
                _ => first.len_utf8(),
            };
            let (token, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            let is_number = first == '-' || first.is_ascii_digit();
            if is_number && !is_exact(token) {
                kept.has_numbers_as_text = true;
                kept.text.push_str(&format!("\"{token}\""));
            } else {
                kept.text.push_str(token);
            }
            kept.members += usize::from(first == ':');
            rest = after;
        }
        kept
    }
}

/// The bytes of the string at the start, with its quotes.
fn string_length(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn members(value: &Value) -> usize {
    let of_map = |map: &Map<String, Value>| map.len() + map.values().map(members).sum::<usize>();
    match value {
        Value::Object(map) => of_map(map),
        Value::Array(items) => items.iter().map(members).sum(),
        _ => 0,
    }
}

/// Whether a number of a document is the same as a JSON value here. A whole number of more than 64
/// bits never is: it would be shown with an exponent.
fn is_exact(token: &str) -> bool {
    if token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok() {
        return true;
    }
    let real = token.parse().ok().filter(|real: &f64| real.is_finite());
    let is_whole = !token.contains(['.', 'e', 'E']);
    real.is_some_and(|real| !is_whole && decimal(token) == decimal(&format!("{real:e}")))
}

/// The digits of a number without zeros at both ends, and their exponent; the sign is left out.
fn decimal(token: &str) -> Option<(String, i64)> {
    let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let significant = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let exponent = exponent.parse::<i64>().ok()? - i64::try_from(fraction.len()).ok()? + zeros;
    let significant = significant.trim_start_matches('0');
    Some((significant.to_owned(), if significant.is_empty() { 0 } else { exponent }))
}

/// A time with an offset, such as `2026-01-01 00:00:00.5+02`, as ISO 8601 in UTC.
fn in_utc(text: &str) -> Option<String> {
    let (text, era) = match text.strip_suffix(" BC") {
        Some(text) => (text, " BC"),
        None => (text, ""),
    };
    let (date, time) = text.split_once(' ')?;
    let at = time.find(['+', '-'])?;
    let (time, offset) = time.split_at_checked(at)?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let mut next = || date.next()?.ok();
    let (year, month, day) = (next()?, next()?, next()?);
    let year = if era.is_empty() { year } else { 1 - year };
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let seconds = days(year, month, day) * 86_400 + seconds(clock)?
        - sign * seconds(offset.trim_start_matches(['+', '-']))?;
    let date = date_of(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (date, era) = match date.strip_suffix(" BC") {
        Some(date) => (date, " BC"),
        None => (date.as_str(), ""),
    };
    let point = if fraction.is_empty() { "" } else { "." };
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    Some(format!("{date}T{hour:02}:{minute:02}:{second:02}{point}{fraction}Z{era}"))
}

/// The seconds of `hours:minutes:seconds`, the last of which may be missing.
fn seconds(clock: &str) -> Option<i64> {
    let mut unit = 3600;
    let mut sum = 0;
    for part in clock.splitn(3, ':') {
        sum += part.parse::<i64>().ok()? * unit;
        unit /= 60;
    }
    Some(sum)
}

/// The days from the first of March of the year 0 to a date. Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", `days_from_civil`.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year
}

/// The reverse, `civil_from_days` in the same text.
fn date_of(days: i64) -> String {
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    if year > 0 {
        format!("{year:04}-{month:02}-{day:02}")
    } else {
        format!("{:04}-{month:02}-{day:02} BC", 1 - year)
    }
}

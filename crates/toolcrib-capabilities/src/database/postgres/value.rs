//! Values: arguments as text, which the server parses, and cells as JSON.

use std::error::Error;

use serde_json::{Number, Value, json};
use tokio_postgres::types::{
    Format, FromSql, IsNull, Kind, ToSql, Type, private::BytesMut, to_sql_checked,
};

type AnyError = Box<dyn Error + Sync + Send>;

/// An argument in PostgreSQL's text format; `None` is NULL.
#[derive(Debug)]
pub(super) struct Argument(Option<String>);

impl Argument {
    /// The argument for a parameter of a type.
    pub(super) fn new(value: &Value, kind: &Type) -> Self {
        Self(text(value, kind))
    }
}

fn text(value: &Value, kind: &Type) -> Option<String> {
    let is_json = [Type::JSON, Type::JSONB].contains(kind);
    match (value, kind.kind()) {
        (Value::Null, _) => None,
        (value, _) if is_json => Some(value.to_string()),
        (Value::Array(items), Kind::Array(item)) => {
            let items = items.iter().map(|value| element(value, item));
            Some(format!("{{{}}}", items.collect::<Vec<_>>().join(",")))
        }
        (value, Kind::Domain(base)) => text(value, base),
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
    match text(value, kind) {
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

/// A cell of a result.
pub(super) struct Cell(pub(super) Value);

impl<'a> FromSql<'a> for Cell {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, AnyError> {
        Ok(Self(match kind.kind() {
            Kind::Domain(base) => return Self::from_sql(base, raw),
            Kind::Enum(_) => std::str::from_utf8(raw)?.into(),
            Kind::Array(_) => {
                let items = Vec::<Option<Self>>::from_sql(kind, raw)?.into_iter();
                items.map(|item| item.map_or(Value::Null, |Self(value)| value)).collect()
            }
            _ => simple(kind, raw)?,
        }))
    }

    fn accepts(kind: &Type) -> bool {
        match kind.kind() {
            Kind::Domain(base) | Kind::Array(base) => Self::accepts(base),
            Kind::Enum(_) => true,
            Kind::Simple | Kind::Pseudo => {
                SIMPLE.contains(kind) || <&str as FromSql<'_>>::accepts(kind)
            }
            _ => false,
        }
    }
}

/// The types that [`simple`] reads, besides texts.
const SIMPLE: [Type; 17] = [
    Type::BOOL,
    Type::BYTEA,
    Type::CHAR,
    Type::DATE,
    Type::FLOAT4,
    Type::FLOAT8,
    Type::INT2,
    Type::INT4,
    Type::INT8,
    Type::JSON,
    Type::JSONB,
    Type::NUMERIC,
    Type::OID,
    Type::TIME,
    Type::TIMESTAMP,
    Type::TIMESTAMPTZ,
    Type::UUID,
];

fn simple(kind: &Type, raw: &[u8]) -> Result<Value, AnyError> {
    let real = |real: f64| Number::from_f64(real).map_or(Value::Null, Value::Number);
    Ok(match *kind {
        Type::BOOL => bool::from_sql(kind, raw)?.into(),
        Type::BYTEA => json!({ "bytes": raw.len() }),
        Type::CHAR => String::from_utf8_lossy(raw).into(),
        Type::DATE => date(i64::from(i32::from_sql(&Type::INT4, raw)?)).into(),
        Type::FLOAT4 => real(f32::from_sql(kind, raw)?.into()),
        Type::FLOAT8 => real(f64::from_sql(kind, raw)?),
        Type::INT2 => i16::from_sql(kind, raw)?.into(),
        Type::INT4 => i32::from_sql(kind, raw)?.into(),
        Type::INT8 => i64::from_sql(kind, raw)?.into(),
        Type::JSON => serde_json::from_slice(raw)?,
        Type::JSONB => serde_json::from_slice(raw.get(1..).unwrap_or_default())?,
        Type::NUMERIC => numeric(raw).ok_or("a numeric value cannot be read")?.into(),
        Type::OID => u32::from_sql(kind, raw)?.into(),
        Type::TIME => time(i64::from_sql(&Type::INT8, raw)?).into(),
        Type::TIMESTAMP => timestamp(i64::from_sql(&Type::INT8, raw)?, "").into(),
        Type::TIMESTAMPTZ => timestamp(i64::from_sql(&Type::INT8, raw)?, "Z").into(),
        Type::UUID => uuid(raw).into(),
        _ => <&str>::from_sql(kind, raw)?.into(),
    })
}

fn uuid(raw: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in raw.iter().enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// The days from 1970-01-01 to 2000-01-01, where PostgreSQL begins.
const EPOCH_DAYS: i64 = 10_957;
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A date by its days since 2000-01-01.
fn date(days: i64) -> String {
    if days == i64::from(i32::MAX) {
        return "infinity".to_owned();
    }
    if days == i64::from(i32::MIN) {
        return "-infinity".to_owned();
    }
    // Eras of 400 years that begin in March: Howard Hinnant, "chrono-Compatible Low-Level Date
    // Algorithms", civil_from_days.
    let shifted = days + EPOCH_DAYS + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
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

/// A time by its microseconds since midnight.
fn time(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let text = format!("{hour:02}:{minute:02}:{second:02}.{:06}", micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A time by its microseconds since 2000-01-01.
fn timestamp(micros: i64, zone: &str) -> String {
    match micros {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        _ => {
            let (days, rest) =
                (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
            format!("{}T{}{zone}", date(days), time(rest))
        }
    }
}

/// A decimal number, exactly: groups of four digits, with the weight of the first.
fn numeric(raw: &[u8]) -> Option<String> {
    let word = |at: usize| -> Option<u16> {
        let bytes = raw.get(at * 2..at * 2 + 2)?;
        Some(u16::from_be_bytes(bytes.try_into().ok()?))
    };
    let (count, weight) = (usize::from(word(0)?), i32::from(word(1)?.cast_signed()));
    let (sign, scale) = (word(2)?, usize::from(word(3)?));
    match sign {
        0xC000 => return Some("NaN".to_owned()),
        0xD000 => return Some("Infinity".to_owned()),
        0xF000 => return Some("-Infinity".to_owned()),
        _ => {}
    }
    let group = |position: i32| -> Option<u16> {
        match usize::try_from(weight - position) {
            Ok(at) if at < count => word(4 + at),
            _ => Some(0),
        }
    };
    let mut text = String::new();
    for position in (0..=weight.max(0)).rev() {
        text.push_str(&format!("{:04}", group(position)?));
    }
    let whole = text.trim_start_matches('0');
    let mut text = if whole.is_empty() { "0".to_owned() } else { whole.to_owned() };
    if scale > 0 {
        let mut fraction = String::new();
        for position in 1..=scale.div_ceil(4) {
            fraction.push_str(&format!("{:04}", group(-i32::try_from(position).ok()?)?));
        }
        text.push('.');
        text.push_str(fraction.get(..scale)?);
    }
    Some(if sign == 0x4000 { format!("-{text}") } else { text })
}

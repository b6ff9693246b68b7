//! The mathematical functions of SQLite's shell, with the same results. The crate with SQLite's source
//! compiles it without them, and only the environment of the outermost build could change that.

use std::{f64::consts::PI, sync::LazyLock};

use rusqlite::{
    Connection,
    functions::{Context, FunctionFlags},
    types::{Value, ValueRef},
};

type OfOne = fn(f64) -> f64;
type OfTwo = fn(f64, f64) -> f64;

/// The functions may occur in indexes, generated columns and views.
const FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8
    .union(FunctionFlags::SQLITE_DETERMINISTIC)
    .union(FunctionFlags::SQLITE_INNOCUOUS);

const OF_ONE: [(&str, OfOne); 16] = [
    ("acos", f64::acos),
    ("acosh", f64::acosh),
    ("asin", f64::asin),
    ("asinh", f64::asinh),
    ("atan", f64::atan),
    ("atanh", f64::atanh),
    ("cos", f64::cos),
    ("cosh", f64::cosh),
    ("degrees", f64::to_degrees),
    ("exp", f64::exp),
    ("radians", f64::to_radians),
    ("sin", f64::sin),
    ("sinh", f64::sinh),
    ("sqrt", f64::sqrt),
    ("tan", f64::tan),
    ("tanh", f64::tanh),
];

const OF_TWO: [(&str, OfTwo); 4] =
    [("atan2", f64::atan2), ("mod", |x, y| x % y), ("pow", f64::powf), ("power", f64::powf)];

/// An integer is returned as it is.
const TO_WHOLE: [(&str, OfOne); 4] =
    [("ceil", f64::ceil), ("ceiling", f64::ceil), ("floor", f64::floor), ("trunc", f64::trunc)];

const LOGARITHMS: [(&str, OfOne); 4] =
    [("ln", f64::ln), ("log", f64::log10), ("log10", f64::log10), ("log2", f64::log2)];

/// Whether SQLite was compiled with them. Any statement would read the schema of a database in a file,
/// which another process may have locked.
static HAS_THEM: LazyLock<bool> = LazyLock::new(|| {
    let used = "SELECT sqlite_compileoption_used('ENABLE_MATH_FUNCTIONS')";
    let memory = Connection::open_in_memory();
    memory.and_then(|memory| memory.query_row(used, [], |row| row.get(0))).unwrap_or(false)
});

/// Adds the functions, unless SQLite has its own.
pub(super) fn add(connection: &Connection) -> rusqlite::Result<()> {
    if *HAS_THEM {
        return Ok(());
    }
    // The compiler infers the type of `cx`: it differs between the permitted versions of rusqlite.
    for (name, function) in OF_ONE {
        connection
            .create_scalar_function(name, 1, FLAGS, move |cx| Ok(real(cx, 0).map(function)))?;
    }
    for (name, function) in OF_TWO {
        connection.create_scalar_function(name, 2, FLAGS, move |cx| {
            let both = real(cx, 0).zip(real(cx, 1));
            Ok(both.map(|(x, y)| function(x, y)))
        })?;
    }
    for (name, function) in TO_WHOLE {
        connection.create_scalar_function(name, 1, FLAGS, move |cx| {
            Ok(match numeric(cx.get_raw(0)) {
                Some(Value::Real(real)) => Some(Value::Real(function(real))),
                other => other,
            })
        })?;
    }
    for (name, function) in LOGARITHMS {
        connection
            .create_scalar_function(name, 1, FLAGS, move |cx| Ok(positive(cx, 0).map(function)))?;
    }
    connection.create_scalar_function("log", 2, FLAGS, |cx| {
        let base = positive(cx, 0).map(f64::ln).filter(|base| *base > 0.0);
        Ok(base.zip(positive(cx, 1)).map(|(base, x)| x.ln() / base))
    })?;
    connection.create_scalar_function("pi", 0, FLAGS, |_| Ok(PI))
}

fn positive(cx: &Context<'_>, argument: usize) -> Option<f64> {
    real(cx, argument).filter(|real| *real > 0.0)
}

fn real(cx: &Context<'_>, argument: usize) -> Option<f64> {
    match numeric(cx.get_raw(argument))? {
        Value::Integer(integer) => Some(integer as f64),
        Value::Real(real) => Some(real),
        _ => None,
    }
}

/// A number, or a text that is nothing but one; all else makes the result NULL.
fn numeric(value: ValueRef<'_>) -> Option<Value> {
    match value {
        ValueRef::Integer(integer) => Some(Value::Integer(integer)),
        ValueRef::Real(real) => Some(Value::Real(real)),
        ValueRef::Text(text) => {
            let is_space = |c: char| matches!(c, ' ' | '\t'..='\r');
            let text = str::from_utf8(text).ok()?.trim_matches(is_space);
            // Rust also reads names, such as `inf`.
            let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
            if !text.bytes().all(is_number) {
                return None;
            }
            let integer = text.parse().map(Value::Integer);
            integer.or_else(|_| text.parse().map(Value::Real)).ok()
        }
        ValueRef::Null | ValueRef::Blob(_) => None,
    }
}

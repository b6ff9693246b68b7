//! TOML of an MCP client, as the values of [`json`](super::json): one reader for both formats.

use jsonc_parser::{
    ast::{self, ObjectProp, ObjectPropName},
    common::Range,
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::json::Source;

/// Parses a text. `None` if it is not valid TOML, which is recorded.
pub(super) fn parse<'a>(source: &Source<'a>) -> Option<ast::Value<'a>> {
    let text = source.text();
    match DeTable::parse(text) {
        Ok(root) => {
            let range = Range { start: 0, end: text.len() };
            Some(object(text, range, root.into_inner()))
        }
        Err(error) => {
            let start = error.span().map_or(0, |span| span.start);
            source.refuse(start, format!("this is not TOML: {}", error.message()), None);
            None
        }
    }
}

fn object<'a>(text: &'a str, range: Range, table: DeTable<'a>) -> ast::Value<'a> {
    let properties = table.into_iter().map(|(name, value)| {
        let at = range_of(&name);
        let name = ast::StringLit { range: at, value: name.into_inner() };
        let value = value_of(text, value);
        ObjectProp { range: at, name: ObjectPropName::String(name), value }
    });
    ast::Value::Object(ast::Object { range, properties: properties.collect() })
}

fn value_of<'a>(text: &'a str, value: Spanned<DeValue<'a>>) -> ast::Value<'a> {
    let range = range_of(&value);
    let written = text.get(range.start..range.end).unwrap_or_default();
    match value.into_inner() {
        DeValue::String(value) => ast::Value::StringLit(ast::StringLit { range, value }),
        DeValue::Integer(_) | DeValue::Float(_) => {
            ast::Value::NumberLit(ast::NumberLit { range, value: written })
        }
        DeValue::Boolean(value) => ast::Value::BooleanLit(ast::BooleanLit { range, value }),
        DeValue::Datetime(_) => {
            ast::Value::StringLit(ast::StringLit { range, value: written.into() })
        }
        DeValue::Array(items) => {
            let elements = items.into_iter().map(|item| value_of(text, item)).collect();
            ast::Value::Array(ast::Array { range, elements })
        }
        DeValue::Table(table) => object(text, range, table),
    }
}

fn range_of<T>(value: &Spanned<T>) -> Range {
    let span = value.span();
    Range { start: span.start, end: span.end }
}

//! A cursor over a TOML document that knows where everything stands, records every problem and
//! goes on.

mod document;
mod table;
mod value;

pub(crate) use self::{document::Document, table::Table, value::Value};

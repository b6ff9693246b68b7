//! The tool block.

use serde::Serialize;
use serde_json::Value;
use toolcrib_core::{Menu, Tool};

use crate::vendors::plain_schema::plain;

#[derive(Serialize)]
struct Declared<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Value,
}

/// The tools of a menu.
pub(super) fn block(menu: &Menu) -> Result<String, serde_json::Error> {
    serde_json::to_string(&menu.tools().iter().map(Declared::from).collect::<Vec<_>>())
}

impl<'a> From<&'a Tool> for Declared<'a> {
    fn from(tool: &'a Tool) -> Self {
        let function = Function {
            name: tool.name().as_str(),
            description: tool.description(),
            parameters: plain(tool.input_schema(), |_| true),
        };
        Self { r#type: "function", function }
    }
}

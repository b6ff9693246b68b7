//! The tool block, in the server's schema dialect.
//!
//! Of the root, the server passes on `type`, `items`, `properties` and `required`. So properties
//! inside alternatives are moved there, and the alternatives are described after the description.

use serde::Serialize;
use serde_json::Value;
use toolcrib_core::Tool;

use crate::adapters::{
    protocol::Offer,
    schema::{flatten, in_words, plain},
    sent_parts::SentForm,
};

#[derive(Serialize)]
struct ToolDeclaration<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: String,
    parameters: Value,
}

/// The tools of an offer.
pub(super) fn tools(offer: Offer<'_>, first: &SentForm) -> Result<String, serde_json::Error> {
    let declared = offer.declared();
    let declared = declared
        .filter_map(|tool| first.of_tool(tool.digest(), &[], || ToolDeclaration::from(tool)));
    serde_json::to_string(&declared.collect::<Vec<_>>())
}

impl<'a> From<&'a Tool> for ToolDeclaration<'a> {
    fn from(tool: &'a Tool) -> Self {
        // First without references: the text form must not contain any either.
        let mut parameters = plain(tool.input_schema(), |_| true);
        let taken = flatten(&mut parameters, &[]);
        let description = in_words(tool.description(), taken);
        let function = Function { name: tool.name().as_str(), description, parameters };
        Self { r#type: "function", function }
    }
}

//! The tool block.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::name;
use crate::adapters::{
    protocol::Offer,
    schema::plain,
    sent_parts::{Part, SentForm},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Part<Declaration<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters_json_schema: Value,
}

/// The tools of an offer.
pub(super) fn tools(offer: Offer<'_>, first: &SentForm) -> Result<String, serde_json::Error> {
    let function_declarations = offer
        .declared()
        .filter_map(|tool| {
            first.of_tool(tool.digest(), &[], || Declaration {
                name: name::sent(tool.name()),
                description: tool.description(),
                parameters_json_schema: plain(tool.input_schema(), may_be_in_enum),
            })
        })
        .collect();
    serde_json::to_string(&[Tools { function_declarations }])
}

fn may_be_in_enum(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

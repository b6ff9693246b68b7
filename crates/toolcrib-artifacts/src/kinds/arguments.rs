//! Arguments of queries, typed.

use serde::de::DeserializeOwned;
use serde_json::Value;
use toolcrib_core::ToolError;

use super::Asked;

/// The arguments of a query, as a type that denies unknown fields.
///
/// # Errors
/// `input_invalid`, with what serde finds wrong. It may quote a value: the arguments are the model's.
pub fn arguments<T: DeserializeOwned>(asked: &Asked<'_>) -> Result<T, ToolError> {
    let empty = Value::Object(serde_json::Map::new());
    let args = if asked.args.is_null() { &empty } else { asked.args };
    T::deserialize(args).map_err(|error| {
        ToolError::input_invalid(format!("the arguments of `{}`: {error}", asked.query))
    })
}

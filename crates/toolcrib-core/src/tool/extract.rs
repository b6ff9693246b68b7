//! Extractors: argument types of a `#[tool]` function with a special meaning.

use serde::Serialize;
use serde_json::Value;

use super::output::{IntoToolOutput, ToolError, ToolOutput};

/// A value that the tool was made with, such as a pool or a client; hidden from models.
///
/// `#[tool] async fn find(State(pool): State<Pool>, order: u32)` makes `find_tool(pool)`; every call
/// gets a clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State<T>(pub T);

/// All arguments as one existing type, whose schema becomes the tool's.
///
/// `#[tool] async fn find(Args(query): Args<Query>)`, where `Query` derives `serde::Deserialize` and
/// `schemars::JsonSchema`; the documentation of `#[tool]` shows how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Args<T>(pub T);

/// Returns a serializable value: the value is the structured output, its compact JSON the text (a
/// string is its own text).
///
/// A `#[tool]` function may return the value itself; [`ToolBuilder::handler`] needs this wrapper.
///
/// [`ToolBuilder::handler`]: crate::ToolBuilder::handler
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoToolOutput for Json<T> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let data = serde_json::to_value(self.0).map_err(|error| {
            ToolError::failed("the tool's answer could not be serialized").caused_by(error)
        })?;
        Ok(match data {
            Value::String(text) => ToolOutput::text(text.clone()).structured(text),
            data => ToolOutput::json(data),
        })
    }
}

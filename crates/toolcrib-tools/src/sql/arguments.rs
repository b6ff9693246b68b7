//! From a call's arguments to what is bound.

use serde_json::{Number, Value};
use toolcrib_capabilities::database::rusqlite::types::Value as SqlValue;
use toolcrib_core::ToolError;

use crate::making::properties;

/// A property of the input schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// Whether only whole numbers are numbers to it. JSON Schema calls `5.0` one as well.
    whole: bool,
}

impl Parameter {
    /// All properties of a schema, in its order.
    pub(super) fn all_of(schema: &Value) -> Vec<Self> {
        properties(schema)
            .map(|(name, schema)| Self { name: name.to_owned(), whole: is_whole(schema) })
            .collect()
    }

    fn bind(&self, argument: Option<&Value>) -> Result<SqlValue, ToolError> {
        Ok(match argument {
            None | Some(Value::Null) => SqlValue::Null,
            Some(Value::Bool(truth)) => SqlValue::Integer((*truth).into()),
            Some(Value::Number(number)) => self.number(number)?,
            Some(Value::String(text)) => SqlValue::Text(text.clone()),
            Some(json @ (Value::Array(_) | Value::Object(_))) => SqlValue::Text(json.to_string()),
        })
    }

    fn number(&self, number: &Number) -> Result<SqlValue, ToolError> {
        if let Some(integer) = number.as_i64() {
            return Ok(SqlValue::Integer(integer));
        }
        let real = if number.is_f64() { number.as_f64() } else { None };
        match real {
            Some(real) if !self.whole => Ok(SqlValue::Real(real)),
            // Both bounds are exact as floating-point numbers; the upper one is one too many.
            Some(real) if (i64::MIN as f64..-(i64::MIN as f64)).contains(&real) => {
                Ok(SqlValue::Integer(real as i64))
            }
            _ => Err(ToolError::input_invalid(format!(
                "`{}` is a whole number that the database cannot store; it must lie between {} \
                 and {}",
                self.name,
                i64::MIN,
                i64::MAX
            ))),
        }
    }
}

/// The values to bind, in the order of the parameters.
pub(super) fn bind(parameters: &[Parameter], args: &Value) -> Result<Vec<SqlValue>, ToolError> {
    parameters.iter().map(|parameter| parameter.bind(args.get(&parameter.name))).collect()
}

fn is_whole(schema: &Value) -> bool {
    let named = |kind: &str| match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        _ => false,
    };
    named("integer") && !named("number")
}

//! Changes in the schemas within a schema.

use serde_json::Value;
use toolcrib_core::__internal::{Subschemas, subschemas};

use super::Keywords;

/// Changes a schema and then all schemas within it. Booleans are schemas too, and are unchanged.
pub(in super::super) fn change_each(schema: &mut Value, change: fn(&mut Keywords)) {
    let Value::Object(keywords) = schema else { return };
    change(keywords);
    for (keyword, value) in keywords {
        match (subschemas(keyword), value) {
            (Some(Subschemas::One), schema) => change_each(schema, change),
            (Some(Subschemas::List), Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| change_each(schema, change));
            }
            (Some(Subschemas::Named), Value::Object(schemas)) => {
                schemas.values_mut().for_each(|schema| change_each(schema, change));
            }
            _ => {}
        }
    }
}

//! The schema of a tool's arguments.

use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::{Value, json};

/// The schema of a type, as short as possible: every model reads it in every request.
///
/// Types are inlined, and in `$defs` only if they are recursive. A number's range is given by
/// bounds: formats such as `uint32` are not part of JSON Schema, and no validator would check them.
/// Unrestricted values are `{}`, because some model APIs reject `true` as a schema.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        })
        .with_transform(RecursiveTransform(plain));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type is irrelevant to a model.
    schema.remove("title");
    schema.to_value()
}

fn plain(schema: &mut Schema) {
    if schema.as_bool() == Some(true) {
        *schema = Schema::default();
    }
    let Some(format) = schema.get("format").and_then(Value::as_str) else {
        return;
    };
    let range = match format {
        "int32" => json!({ "minimum": i32::MIN, "maximum": i32::MAX }),
        "uint32" => json!({ "maximum": u32::MAX }),
        // The smaller types already have bounds; the larger ones are as large as JSON numbers are
        // anyway.
        "int8" | "uint8" | "int16" | "uint16" | "int64" | "uint64" | "int128" | "uint128"
        | "int" | "uint" | "float" | "double" => json!({}),
        _ => return,
    };
    schema.remove("format");
    for (bound, value) in range.as_object().into_iter().flatten() {
        if schema.get(bound).is_none() {
            schema.insert(bound.clone(), value.clone());
        }
    }
}

//! The schema of a tool's arguments.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use toolcrib_config::{Diagnostic, Located, Problems, Spot};

use crate::{
    file::{Input, SchemaProblem, ToolSection, check_schema},
    read::{root::Root, text_file::MAX_TEXT},
};

/// The schema of a tool's arguments; `None` when it is not sound, which is recorded.
pub(crate) fn input_schema(tool: &ToolSection, root: &Root, problems: &Problems) -> Option<Json> {
    match &tool.input {
        Input::OfKind => Some(tool.declaration.input_schema.clone()),
        Input::None => Some(json!({ "type": "object" })),
        Input::Params(schema) => Some(schema.clone()),
        Input::File(file) => schema_file(file, root, problems),
        Input::Broken => None,
    }
}

fn schema_file(file: &Located<Arc<str>>, root: &Root, problems: &Problems) -> Option<Json> {
    let text = root.by_values().named_text(file, MAX_TEXT, problems)?;
    let start = Spot::start_of(root.shown(&file.value));
    let schema: Json = match serde_json::from_str(&text) {
        Ok(schema) => schema,
        Err(error) => {
            let (line, column) = (error.line().max(1), error.column().max(1));
            let at = Spot { line, column, ..start };
            // The place stands at its end.
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            problems.push(Diagnostic::error(&at, format!("this is not JSON: {message}")));
            return None;
        }
    };
    if schema.get("type").and_then(Json::as_str) != Some("object") {
        problems.push(
            Diagnostic::error(
                &start,
                "the schema is not of an object: models pass arguments as one",
            )
            .help("write at the top level: \"type\": \"object\""),
        );
        return None;
    }
    let found = check_schema(&schema);
    let sound = found.is_empty();
    for SchemaProblem { pointer, message } in found {
        let place = if pointer.is_empty() { String::new() } else { format!("at {pointer}: ") };
        problems.push(Diagnostic::error(&start, format!("{place}{message}")));
    }
    sound.then_some(schema)
}

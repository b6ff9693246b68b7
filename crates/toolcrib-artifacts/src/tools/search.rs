//! `artifact_search`.

use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{InvalidToolError, Tool, ToolContext, ToolError};

use super::{ARTIFACT_SEARCH, builder, cursor_property, find, first_page, id_property, output};
use crate::{
    artifacts::Artifacts,
    search::{LONGEST_PATTERN, Pattern, Search},
};

/// The maximum number of context lines.
const MOST_CONTEXT: u64 = 10;

/// The default and the maximum number of matching lines.
const MATCHES: usize = 100;
const MOST_MATCHES: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    id: String,
    pattern: String,
    #[serde(default)]
    flags: String,
    #[serde(default)]
    context: u64,
    limit: Option<usize>,
    cursor: Option<String>,
}

pub(super) fn tool(artifacts: &Artifacts) -> Result<Tool, InvalidToolError> {
    let artifacts = artifacts.clone();
    builder(
        ARTIFACT_SEARCH,
        "Searches a large result that was stored as an artifact, line by line. Returns the \
         matching lines with their numbers: `12:` marks a match, `13-` a line next to one.",
    )
    .framework()
    .input_schema(json!({
        "type": "object",
        "properties": {
            "id": id_property(),
            "pattern": {
                "type": "string", "maxLength": LONGEST_PATTERN,
                "description": "A regular expression, without look-around and back-references.",
            },
            "flags": {
                "type": "string", "pattern": "^[imsu]*$", "description": "`i` ignores case.",
            },
            "context": {
                "type": "integer", "minimum": 0, "maximum": MOST_CONTEXT, "default": 0,
                "description": "The number of lines to show before and after each match.",
            },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": MOST_MATCHES, "default": MATCHES,
                "description": "The maximum number of matching lines to show.",
            },
            "cursor": cursor_property(),
        },
        "required": ["id", "pattern"],
        "additionalProperties": false,
    }))
    .blocking(move |args: Args, cx: ToolContext| {
        let turn = artifacts.of_call(&cx);
        let artifact = find(&turn, &args.id)?;
        let content = artifact.content();
        let pattern = Pattern::new(&args.pattern, &args.flags)
            .map_err(|error| ToolError::input_invalid(error.to_string()))?;
        let page = first_page(&turn, ARTIFACT_SEARCH, &cx).at(args.cursor.as_deref(), content)?;
        let search = Search {
            pattern,
            context: args.context.min(MOST_CONTEXT),
            most: args.limit.unwrap_or(MATCHES).clamp(1, MOST_MATCHES),
            numbers: true,
        };
        let answer = search.run(content, &page, cx.cancellation())?;
        Ok::<_, ToolError>(output(&artifact, answer))
    })
}

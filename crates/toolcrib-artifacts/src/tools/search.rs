//! `artifact_search`.

use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{InvalidTool, Tool, ToolContext, ToolError};

use super::{ARTIFACT_SEARCH, builder, cursor_property, find, first_page, id_property, output};
use crate::{
    artifacts::Artifacts,
    search::{LONGEST_PATTERN, Pattern, Search},
};

/// How many lines beside a match may be shown.
const MOST_CONTEXT: u64 = 10;

/// How many matching lines are shown, if nobody says, and at most.
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

pub(super) fn tool(artifacts: &Artifacts) -> Result<Tool, InvalidTool> {
    let artifacts = artifacts.clone();
    builder(
        ARTIFACT_SEARCH,
        "Searches a large result that was kept as an artifact, line by line. Answers the matching \
         lines with their numbers: `12:` stands before a match, `13-` before a line beside one.",
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
                "description": "How many lines to show before and behind each match.",
            },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": MOST_MATCHES, "default": MATCHES,
                "description": "How many matching lines to show at most.",
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

//! `artifact_read`.

use std::ops::Range;

use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{
    __internal::counted, ArtifactStoreError, InvalidToolError, Tool, ToolContext, ToolError,
};

use super::{ARTIFACT_READ, builder, cursor_property, find, first_page, id_property, output};
use crate::{artifacts::Artifacts, content::Content, page::show};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArgs {
    id: String,
    head: Option<u64>,
    tail: Option<u64>,
    lines: Option<Part>,
    bytes: Option<Part>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    from: u64,
    to: Option<u64>,
}

pub(super) fn tool(artifacts: &Artifacts) -> Result<Tool, InvalidToolError> {
    let artifacts = artifacts.clone();
    let number = |what: &str, least: u64| json!({ "type": "integer", "minimum": least, "description": what });
    let part = |what: &str, from: serde_json::Value, to: serde_json::Value| {
        json!({
            "type": "object", "description": what,
            "properties": { "from": from, "to": to },
            "required": ["from"], "additionalProperties": false,
        })
    };
    builder(
        ARTIFACT_READ,
        "Reads a part of a large result that was stored as an artifact: its first or last lines, \
         or a range of lines or bytes; give at most one of these. Without \
         any it begins at the start.",
    )
    .framework()
    .input_schema(json!({
        "type": "object",
        "properties": {
            "id": id_property(),
            "head": number("The number of first lines.", 1),
            "tail": number("The number of last lines.", 1),
            "lines": part(
                "Lines, both counted from 1.",
                number("The first.", 1),
                number("The last. Default: to the end.", 1),
            ),
            "bytes": part(
                "Bytes, counted from 0.",
                number("The first.", 0),
                number("The one after the last. Default: to the end.", 0),
            ),
            "cursor": cursor_property(),
        },
        "required": ["id"],
        "additionalProperties": false,
    }))
    .blocking(move |args: ReadArgs, cx: ToolContext| {
        let turn = artifacts.of_call(&cx);
        let artifact = find(&turn, &args.id)?;
        let content = artifact.content();
        let range = range(&args, content)?;
        let page = first_page(&turn, ARTIFACT_READ, &cx).at(args.cursor.as_deref(), content)?;
        let mut answer = show(content, range.clone(), &page)?;
        if answer.text.is_empty() {
            answer.status = Some(format!(
                "the range is empty; the artifact has {} in {}",
                counted(content.bytes(), "byte"),
                counted(content.lines(), "line")
            ));
        }
        Ok::<_, ToolError>(output(&artifact, answer))
    })
}

/// The requested bytes.
fn range(args: &ReadArgs, content: &Content) -> Result<Range<u64>, ToolError> {
    for (name, part) in [("lines", &args.lines), ("bytes", &args.bytes)] {
        if let Some(Part { from, to: Some(to) }) = part
            && from > to
        {
            let message = format!("`{name}.from` is {from}, after `{name}.to`, which is {to}");
            return Err(ToolError::input_invalid(message));
        }
    }
    let count = content.lines();
    let lines = |lines: Range<u64>| -> Result<Range<u64>, ArtifactStoreError> {
        content.line_range(lines.start.min(count)..lines.end.min(count))
    };
    let range = match (args.head, args.tail, &args.lines, &args.bytes) {
        (None, None, None, None) => 0..content.bytes(),
        (Some(head), None, None, None) => lines(0..head)?,
        (None, Some(tail), None, None) => lines(content.last_lines(tail)?)?,
        (None, None, Some(part), None) => {
            lines(part.from.saturating_sub(1)..part.to.unwrap_or(count))?
        }
        (None, None, None, Some(part)) => {
            let end = part.to.unwrap_or(u64::MAX).min(content.bytes());
            part.from.min(end)..end
        }
        _ => {
            return Err(ToolError::input_invalid(
                "give only one of `head`, `tail`, `lines` and `bytes`",
            ));
        }
    };
    Ok(range)
}

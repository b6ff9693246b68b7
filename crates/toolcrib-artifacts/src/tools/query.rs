//! `artifact_query`.

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_core::{InvalidToolError, Tool, ToolContext, ToolError};

use super::{ARTIFACT_QUERY, builder, cursor_property, find, first_page, id_property, output};
use crate::{
    artifact::Artifact,
    artifacts::Artifacts,
    kinds::check,
    page::{Answer, Items, Page},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    id: String,
    query: Option<String>,
    #[serde(default)]
    args: Value,
    cursor: Option<String>,
}

pub(super) fn tool(artifacts: &Artifacts) -> Result<Tool, InvalidToolError> {
    let artifacts = artifacts.clone();
    builder(
        ARTIFACT_QUERY,
        "Queries a large result that was stored as an artifact, by its kind: fields and items of \
         JSON, headings and sections of Markdown, columns and rows of a table. Without `query` it \
         lists the queries of that artifact and their `args`.",
    )
    .framework()
    .input_schema(json!({
        "type": "object",
        "properties": {
            "id": id_property(),
            "query": { "type": "string", "description": "The query; omit it to list all." },
            "args": { "type": "object", "description": "The arguments of that query." },
            "cursor": cursor_property(),
        },
        "required": ["id"],
        "additionalProperties": false,
    }))
    .blocking(move |args: Args, cx: ToolContext| {
        let turn = artifacts.of_call(&cx);
        let artifact = find(&turn, &args.id)?;
        let page = first_page(&turn, ARTIFACT_QUERY, &cx)
            .at(args.cursor.as_deref(), artifact.content())?;
        let answer = match &args.query {
            None => queries(&artifact, page),
            Some(query) => {
                let known = artifact.kind().queries();
                let Some(known) = known.iter().find(|known| *known.name == **query) else {
                    return Err(unknown(&artifact));
                };
                check(known, &args.args)?;
                artifacts.ask(&artifact, query, &args.args, page, cx.cancellation())?
            }
        };
        Ok(output(&artifact, answer))
    })
}

/// The queries, each with the schema of its arguments.
fn queries(artifact: &Artifact, page: Page) -> Answer {
    let mut items = Items::new(page, u64::MAX);
    for query in artifact.kind().queries() {
        let mut item = format!("{}: {}", query.name, query.description);
        if !query.properties.is_empty() {
            let schema = query.schema_with(serde_json::Map::new(), &[]);
            item.push_str(&format!(" args: {schema}"));
        }
        items.push(&item);
    }
    items.answer("queries")
}

fn unknown(artifact: &Artifact) -> ToolError {
    let kind = artifact.kind();
    let names: Vec<_> = kind.queries().iter().map(|query| query.name.to_string()).collect();
    ToolError::input_invalid(format!(
        "artifact `{}` is of the kind {}; its queries are: {}",
        artifact.id(),
        kind.name(),
        names.join(", ")
    ))
}

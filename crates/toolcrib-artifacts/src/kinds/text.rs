//! The kind `text`, with the queries of every artifact.

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_core::ToolError;

use super::{
    arguments::{arguments, no_arguments},
    kind::{ArtifactKind, Query, QueryRequest},
};
use crate::{
    page::{Answer, Page, show},
    search::{LONGEST_PATTERN, Pattern, Search},
};

/// The default number of lines of `head` and `tail`.
const LINES: u64 = 10;

/// Bytes per token, as a fraction: 3.5.
const BYTES_OF_TWO_TOKENS: u64 = 7;

/// The maximum number of lines of `grep`.
const GREP_LINES: usize = 1_000;

/// The kind that matches every content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text;

/// The `limit` argument of queries with items.
pub(crate) fn limit_properties() -> Value {
    json!({
        "limit": {
            "type": "integer", "minimum": 1, "maximum": 10_000,
            "description": "The maximum number to show.",
        },
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    #[serde(default = "ten")]
    n: u64,
}

fn ten() -> u64 {
    LINES
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grep {
    pattern: String,
    #[serde(default)]
    flags: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cat {
    start: Option<i64>,
    end: Option<i64>,
}

impl ArtifactKind for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn queries(&self) -> Vec<Query> {
        let count = || {
            json!({ "n": {
                "type": "integer", "minimum": 1, "default": LINES, "description": "How many lines.",
            } })
        };
        let line = |what: &str| json!({ "type": "integer", "minimum": 0, "description": what });
        vec![
            Query::new("head", "The first lines.").takes(count()).paged(),
            Query::new("tail", "The last lines.").takes(count()).paged(),
            Query::new("grep", "The lines that a regular expression matches.")
                .takes(json!({
                    "pattern": {
                        "type": "string", "maxLength": LONGEST_PATTERN,
                        "description": "A regular expression without look-around.",
                    },
                    "flags": {
                        "type": "string", "pattern": "^[imsu]*$",
                        "description": "`i` ignores case.",
                    },
                }))
                .requires(["pattern"])
                .paged(),
            Query::new("cat", "Lines from `start` to `end`, exclusive.")
                .takes(json!({
                    "start": line("The first line, from 0. Default: the first."),
                    "end": line("The line after the last. Default: to the end."),
                }))
                .paged(),
            Query::new("byte_length", "The number of bytes."),
            Query::new("line_count", "The number of lines."),
            Query::new("estimate_tokens", "The approximate number of tokens of the whole content."),
        ]
    }

    fn query(&self, asked: &QueryRequest<'_>) -> Result<Answer, ToolError> {
        let lines = asked.content.lines();
        match asked.query {
            "head" => {
                let Count { n } = arguments(asked)?;
                show_lines(asked, 0..n.min(lines))
            }
            "tail" => {
                let Count { n } = arguments(asked)?;
                show_lines(asked, lines.saturating_sub(n)..lines)
            }
            "cat" => {
                let Cat { start, end } = arguments(asked)?;
                let clamped = |line: i64| u64::try_from(line).unwrap_or(0).min(lines);
                let start = clamped(start.unwrap_or(0));
                show_lines(asked, start..end.map_or(lines, clamped).max(start))
            }
            "grep" => {
                let Grep { pattern, flags } = arguments(asked)?;
                let pattern = Pattern::new(&pattern, &flags)
                    .map_err(|error| ToolError::input_invalid(error.to_string()))?;
                let search = Search { pattern, context: 0, most: GREP_LINES, numbers: false };
                search.run(asked.content, &asked.page, asked.cancellation)
            }
            "byte_length" => {
                no_arguments(asked)?;
                Ok(Answer::text(asked.content.bytes().to_string()))
            }
            "line_count" => {
                no_arguments(asked)?;
                Ok(Answer::text(lines.to_string()))
            }
            "estimate_tokens" => {
                no_arguments(asked)?;
                let tokens = (asked.content.bytes() * 2).div_ceil(BYTES_OF_TWO_TOKENS);
                Ok(Answer::text(tokens.to_string()))
            }
            _ => Err(asked.unknown()),
        }
    }
}

fn show_lines(asked: &QueryRequest<'_>, lines: std::ops::Range<u64>) -> Result<Answer, ToolError> {
    let page: &Page = &asked.page;
    if lines.is_empty() {
        return Ok(Answer::text("(no lines)"));
    }
    let range = asked.content.line_range(lines)?;
    let mut answer = show(asked.content, range, page)?;
    if answer.text.is_empty() {
        answer.status.get_or_insert_with(|| "1 empty line".to_owned());
    }
    Ok(answer)
}

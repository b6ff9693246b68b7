//! The kind `markdown`.

mod links;
mod outline;

use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{CancellationToken, ToolError};

use self::{
    links::links,
    outline::{LINE, Outline},
};
use super::{
    arguments::{arguments, no_arguments},
    kind::{ArtifactKind, ContentHead, Index, Query, QueryRequest, check_cancelled},
};
use crate::{
    content::Content,
    page::{Answer, Items, show},
};

/// The maximum size of a code block in a list, in bytes; the whole block is readable by its lines.
const CODE: u64 = 64 * 1024;

/// Markdown: headings that begin with `#` or are underlined, fenced code, frontmatter, links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Markdown;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Depth {
    depth: Option<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    heading: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Language {
    language: Option<String>,
}

impl ArtifactKind for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn family(&self) -> &'static str {
        "md"
    }

    /// A comment of a script looks like a heading, so a second indication is required.
    fn detect(&self, start: &ContentHead<'_>) -> bool {
        if start.text().starts_with("#!") {
            return false;
        }
        let (mut headings, mut others, mut in_code) = (0, 0, false);
        for (number, line) in start.lines().enumerate() {
            if line.starts_with("```") {
                in_code = !in_code;
                others += 1;
            } else if in_code {
            } else if number == 0 && line == "---" {
                others += 1;
            } else if line.starts_with("## ") || line.starts_with("### ") {
                headings += 1;
                others += 1;
            } else if line.starts_with("# ") {
                headings += 1;
            } else if !links(line.get(..LINE.min(line.len())).unwrap_or_default()).is_empty() {
                others += 1;
            }
        }
        headings > 0 && others > 0
    }

    fn queries(&self) -> Vec<Query> {
        let depth = || {
            json!({ "depth": {
                "type": "integer", "minimum": 1, "maximum": 6,
                "description": "The maximum depth of headings. Default: all.",
            } })
        };
        vec![
            Query::new("frontmatter", "The content between the first two `---`.").paged(),
            Query::new("headings", "The headings, each with its line from 1.")
                .takes(depth())
                .paged(),
            Query::new("sections", "The sections, each with its lines from 1, to be read by them.")
                .takes(depth())
                .paged(),
            Query::new("section", "The text below a heading, with the heading.")
                .takes(json!({ "heading": {
                    "type": "string", "description": "The heading's text, without `#`.",
                } }))
                .requires(["heading"])
                .paged(),
            Query::new("code_blocks", "The fenced code, each with its lines from 1.")
                .takes(json!({ "language": {
                    "type": "string",
                    "description": "Only this language; empty: only blocks without one.",
                } }))
                .paged(),
            Query::new("links", "The links, each with its line from 1.").paged(),
            Query::new("images", "The images, each with its line from 1.").paged(),
        ]
    }

    fn index(&self, content: &Content, cancel: &CancellationToken) -> Result<Index, ToolError> {
        let outline = Outline::of(content, cancel)?;
        check_cancelled(cancel)?;
        Ok(Index::new(outline))
    }

    fn query(&self, asked: &QueryRequest<'_>) -> Result<Answer, ToolError> {
        let content = asked.content;
        let Some(outline) = asked.index.get::<Outline>() else { return Err(asked.unknown()) };
        let mut items = Items::new(asked.page, u64::MAX);
        let mut answer = match asked.query {
            "frontmatter" => {
                no_arguments(asked)?;
                let Some(lines) = outline.frontmatter.clone() else {
                    return Ok(Answer::text("(no frontmatter)"));
                };
                return Ok(show(content, content.line_range(lines)?, &asked.page)?);
            }
            "headings" => {
                for (_, heading) in outline.up_to(arguments::<Depth>(asked)?.depth) {
                    let marks = "#".repeat(usize::from(heading.depth));
                    items.push(&format!("{}: {marks} {}", heading.line + 1, heading.text));
                }
                items.answer("headings")
            }
            "sections" => {
                for (at, heading) in outline.up_to(arguments::<Depth>(asked)?.depth) {
                    let lines = outline.section(at, content.lines());
                    let (first, last) = (lines.start + 1, lines.end);
                    items.push(&format!("{first}-{last}: {}", heading.text));
                }
                items.answer("sections")
            }
            "section" => {
                let Section { heading } = arguments(asked)?;
                let wanted = heading.trim_start_matches('#').trim();
                let found = outline.headings.iter().position(|heading| heading.text == wanted);
                let missing = "heading not found; `headings` lists them";
                let at = found.ok_or_else(|| ToolError::input_invalid(missing))?;
                let range = content.line_range(outline.section(at, content.lines()))?;
                return Ok(show(content, range, &asked.page)?);
            }
            "code_blocks" => {
                let Language { language } = arguments(asked)?;
                self.code_blocks(asked, outline, language.as_deref(), &mut items)?;
                items.answer("code blocks")
            }
            "links" | "images" => {
                no_arguments(asked)?;
                self.links(asked, outline, asked.query == "images", &mut items)?;
                items.answer(asked.query)
            }
            _ => return Err(asked.unknown()),
        };
        if outline.is_cut {
            let status = answer.status.get_or_insert_default();
            if !status.is_empty() {
                status.push_str("; ");
            }
            status.push_str("the document has more parts than are indexed");
        }
        Ok(answer)
    }
}

impl Markdown {
    fn code_blocks(
        self,
        asked: &QueryRequest<'_>,
        outline: &Outline,
        language: Option<&str>,
        items: &mut Items,
    ) -> Result<(), ToolError> {
        for code in &outline.code {
            if items.is_full() {
                break;
            }
            if language.is_some_and(|language| language != code.language) {
                continue;
            }
            if !items.wants_next() {
                items.skip(1);
                continue;
            }
            let inside = code.lines.start + 1..code.lines.end - u64::from(code.is_closed);
            let range = asked.content.line_range(inside.start..inside.end.max(inside.start))?;
            let bytes = asked.content.read(range.start..range.end.min(range.start + CODE))?;
            let (first, last) = (code.lines.start + 1, code.lines.end);
            items.push(&format!(
                "{first}-{last}: {}\n{}",
                if code.language.is_empty() { "(no language)" } else { &code.language },
                String::from_utf8_lossy(&bytes)
            ));
        }
        Ok(())
    }

    fn links(
        self,
        asked: &QueryRequest<'_>,
        outline: &Outline,
        images: bool,
        items: &mut Items,
    ) -> Result<(), ToolError> {
        let behind = outline.frontmatter.as_ref().map_or(0, |lines| lines.end + 1);
        let mut lines = asked.content.lines_from(behind)?;
        while !items.is_full()
            && let Some(line) = lines.next(LINE)?
        {
            asked.check_cancelled()?;
            if outline.is_code(line.number) {
                continue;
            }
            for link in links(&line.text()) {
                if link.is_image == images {
                    items.push(&format!("{}: [{}]({})", line.number + 1, link.text, link.target));
                }
            }
        }
        Ok(())
    }
}

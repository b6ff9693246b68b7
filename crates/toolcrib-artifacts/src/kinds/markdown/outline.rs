//! The outline of a Markdown document, found in one pass over its lines.

use toolcrib_core::{ArtifactStoreError, CancellationToken};

use crate::content::Content;

/// The maximum number of bytes of a line that are examined.
pub(super) const LINE: usize = 4 * 1024;

/// The maximum number of headings and code blocks.
const MOST: usize = 50_000;

/// The maximum number of lines of an underlined heading. More lines are text followed by a
/// separator.
const HEADING_LINES: u64 = 3;

/// The maximum number of lines of a frontmatter.
const FRONTMATTER_LINES: u64 = 200;

/// The parts of a document, by their lines, from 0.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    /// The lines between the fences of the frontmatter.
    pub(super) frontmatter: Option<std::ops::Range<u64>>,
    pub(super) headings: Vec<Heading>,
    pub(super) code: Vec<Code>,
    /// Whether there are more than the maximum.
    pub(super) is_cut: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Heading {
    pub(super) line: u64,
    pub(super) depth: u8,
    pub(super) text: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// The lines with the fences. An unclosed block extends to the end.
    pub(super) lines: std::ops::Range<u64>,
    pub(super) language: String,
    pub(super) is_closed: bool,
}

/// An open fence.
struct Fence {
    mark: char,
    length: usize,
}

impl Outline {
    pub(super) fn of(
        content: &Content,
        cancel: &CancellationToken,
    ) -> Result<Self, ArtifactStoreError> {
        let mut outline = Self::default();
        let mut open: Option<Fence> = None;
        let mut paragraph = Paragraph::None;
        let mut lines = content.lines_from(outline.find_frontmatter(content)?)?;
        while let Some(line) = lines.next(LINE)? {
            if line.number.is_multiple_of(4_096) && cancel.is_cancelled() {
                break;
            }
            let text = line.text();
            if let Some(fence) = &open {
                if fence.is_closed_by(&text) {
                    open = None;
                    outline.close(line.number + 1, true);
                }
                continue;
            }
            let before = std::mem::take(&mut paragraph);
            if let Some((fence, language)) = opened(&text) {
                let code = Code { lines: line.number..line.number + 1, language, is_closed: false };
                if outline.code.len() < MOST {
                    outline.code.push(code);
                } else {
                    outline.is_cut = true;
                }
                open = Some(fence);
            } else if let Some((depth, text)) = heading(&text) {
                outline.add(Heading { line: line.number, depth, text });
            } else {
                match (before, underline(&text)) {
                    (Paragraph::Text { line, text }, Some(depth)) => {
                        outline.add(Heading { line, depth, text });
                    }
                    (before, _) => paragraph = before.with(line.number, &text),
                }
            }
        }
        if open.is_some() {
            outline.close(content.lines(), false);
        }
        Ok(outline)
    }

    fn add(&mut self, heading: Heading) {
        if self.headings.len() < MOST {
            self.headings.push(heading);
        } else {
            self.is_cut = true;
        }
    }

    /// The end of the frontmatter, if there is one.
    fn find_frontmatter(&mut self, content: &Content) -> Result<u64, ArtifactStoreError> {
        let mut lines = content.lines_from(0)?;
        let begins = lines.next(LINE)?.is_some_and(|line| line.text().trim_end() == "---");
        while begins && let Some(line) = lines.next(LINE)? {
            if line.number > FRONTMATTER_LINES {
                break;
            }
            if matches!(line.text().trim_end(), "---" | "...") {
                self.frontmatter = Some(1..line.number);
                return Ok(line.number + 1);
            }
        }
        Ok(0)
    }

    fn close(&mut self, end: u64, is_closed: bool) {
        if let Some(code) = self.code.last_mut().filter(|code| !code.is_closed) {
            code.lines.end = end;
            code.is_closed = is_closed;
        }
    }

    /// The headings up to a depth, with their positions.
    pub(super) fn up_to(&self, depth: Option<u8>) -> impl Iterator<Item = (usize, &Heading)> {
        let is_wanted = move |heading: &Heading| depth.is_none_or(|depth| heading.depth <= depth);
        self.headings.iter().enumerate().filter(move |(_, heading)| is_wanted(heading))
    }

    /// The lines of a section: up to the next heading of the same depth or less.
    pub(super) fn section(&self, heading: usize, lines: u64) -> std::ops::Range<u64> {
        let Some(this) = self.headings.get(heading) else { return 0..0 };
        let behind = self.headings.get(heading + 1..).unwrap_or_default();
        let end = behind.iter().find(|next| next.depth <= this.depth);
        this.line..end.map_or(lines, |next| next.line)
    }

    /// Whether a line is in a code block.
    pub(super) fn is_code(&self, line: u64) -> bool {
        let behind = self.code.partition_point(|code| code.lines.start <= line);
        behind
            .checked_sub(1)
            .and_then(|at| self.code.get(at))
            .is_some_and(|code| code.lines.contains(&line))
    }
}

impl Fence {
    /// The same character, at least as often, and no other text.
    fn is_closed_by(&self, line: &str) -> bool {
        indented(line).is_some_and(|text| {
            let text = text.trim_end();
            text.chars().all(|c| c == self.mark) && text.chars().count() >= self.length
        })
    }
}

/// The lines so far, which a row of `=` or `-` may turn into a heading.
#[derive(Default)]
enum Paragraph {
    #[default]
    None,
    Text {
        line: u64,
        text: String,
    },
    /// A list item, a quote, a table, many lines: not a heading of the document.
    Other,
}

impl Paragraph {
    /// Adds the next line.
    fn with(self, number: u64, line: &str) -> Self {
        let words = line.trim();
        if words.is_empty() || is_rule(words) {
            return Self::None;
        }
        match self {
            Self::None if indented(line).is_none() || line.starts_with('\t') => Self::None,
            Self::None | Self::Text { .. } if is_in_block(words) => Self::Other,
            Self::None => Self::Text { line: number, text: words.to_owned() },
            Self::Text { line, mut text } if number - line < HEADING_LINES => {
                text.push(' ');
                text.push_str(words);
                Self::Text { line, text }
            }
            Self::Text { .. } | Self::Other => Self::Other,
        }
    }
}

/// The depth of the heading that a line makes of the paragraph above it.
fn underline(line: &str) -> Option<u8> {
    let marks = indented(line)?.trim_end();
    let all = |mark| !marks.is_empty() && marks.chars().all(|c| c == mark);
    match marks {
        _ if all('=') => Some(1),
        _ if all('-') => Some(2),
        _ => None,
    }
}

/// Whether a line is a row of `-`, `*` or `_`, a separator.
fn is_rule(words: &str) -> bool {
    ['-', '*', '_'].into_iter().any(|mark| {
        words.chars().all(|c| c == mark || c.is_whitespace()) && words.matches(mark).count() >= 3
    })
}

/// Whether a line begins an item of a list, a quote, HTML, or the row of a table.
fn is_in_block(words: &str) -> bool {
    let behind_number = words.trim_start_matches(|c: char| c.is_ascii_digit());
    let marks = if behind_number.len() < words.len() { &['.', ')'][..] } else { &['-', '*', '+'] };
    let is_item = behind_number
        .strip_prefix(marks)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    is_item || words.starts_with(['>', '<', '|'])
}

/// A line without its indentation of up to three spaces; a deeper one is code.
fn indented(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len() <= 3).then_some(text)
}

fn opened(line: &str) -> Option<(Fence, String)> {
    let text = indented(line)?;
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = text.trim_start_matches(mark);
    let length = text.len() - rest.len();
    if length < 3 || (mark == '`' && rest.contains('`')) {
        return None;
    }
    let language = rest.split_whitespace().next().unwrap_or_default();
    Some((Fence { mark, length }, language.to_owned()))
}

fn heading(line: &str) -> Option<(u8, String)> {
    let text = indented(line)?;
    let rest = text.trim_start_matches('#');
    let depth =
        u8::try_from(text.len() - rest.len()).ok().filter(|depth| (1..=6).contains(depth))?;
    if !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let rest = rest.trim();
    let closed = rest.trim_end_matches('#');
    // A row of # at the end does not belong to the title, if a space precedes it.
    let title =
        if closed.is_empty() || closed.ends_with([' ', '\t']) { closed.trim_end() } else { rest };
    Some((depth, title.to_owned()))
}

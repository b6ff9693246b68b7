//! Markup within a line: emphasis, code, links.

use anstyle::Style;

use super::{super::wrap::Wrap, CODE, FAINT};

/// A span that is not closed after this number of bytes is shown as it was written.
const LONGEST_SPAN: usize = 2_000;

/// Renders the markup of one line after the other.
#[derive(Debug, Default)]
pub(super) struct Inline {
    /// The style of the line.
    style: Style,
    /// The last character of the line that was rendered.
    last: Option<char>,
}

/// A span at the beginning of a text.
enum Span<'a> {
    /// Text in a style, which contains spans itself; and the bytes that it takes.
    Styled(Style, &'a str, usize),
    Code(&'a str, usize),
    Link {
        text: &'a str,
        target: &'a str,
        bytes: usize,
    },
    /// A character without its escape.
    Escaped(&'a str),
    /// Not a span, but these bytes of text.
    Text(usize),
    /// An unclosed span, which more input may close.
    Open,
}

impl Inline {
    pub(super) fn begin_line(&mut self, style: Style) {
        (self.style, self.last) = (style, None);
    }

    /// The bytes of an incomplete line that can be rendered now.
    pub(super) fn ready(&self, line: &str) -> usize {
        let (mut at, mut last) = (0, self.last);
        while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
            let bytes = match span(rest, last, false) {
                Span::Open if rest.len() > LONGEST_SPAN => return line.len(),
                Span::Open => break,
                Span::Styled(_, _, bytes)
                | Span::Code(_, bytes)
                | Span::Link { bytes, .. }
                | Span::Text(bytes) => bytes,
                Span::Escaped(c) => 1 + c.len(),
            };
            last = rest.get(..bytes).and_then(|taken| taken.chars().last());
            at += bytes;
        }
        at
    }

    /// Renders a part of the line. A span without an end in it is text.
    pub(super) fn render(&mut self, text: &str, wrap: &mut Wrap, width: usize) {
        if text.is_empty() {
            return;
        }
        let mut rendered = String::new();
        styled(text, self.style, self.last, &mut rendered);
        wrap.push(&rendered, width);
        self.last = text.chars().last();
    }

    pub(super) fn end_line(&mut self, wrap: &mut Wrap, width: usize) {
        wrap.end_word(width);
        *self = Self::default();
    }
}

/// The text of a line without its markup, in one style.
pub(super) fn styled(text: &str, style: Style, mut last: Option<char>, to: &mut String) {
    let put = |part: &str, style: Style, to: &mut String| {
        to.push_str(&format!("{style}{part}{style:#}"));
    };
    let mut rest = text;
    while !rest.is_empty() {
        let bytes = match span(rest, last, true) {
            Span::Styled(inner, text, bytes) => {
                styled(text, with(style, inner), None, to);
                bytes
            }
            Span::Code(code, bytes) => {
                put(code, with(style, CODE), to);
                bytes
            }
            Span::Link { text, target, bytes } => {
                styled(text, style, None, to);
                if text != target {
                    put(&format!(" ({target})"), with(style, FAINT), to);
                }
                bytes
            }
            Span::Escaped(c) => {
                put(c, style, to);
                1 + c.len()
            }
            Span::Text(bytes) => {
                put(rest.get(..bytes).unwrap_or(rest), style, to);
                bytes
            }
            Span::Open => {
                put(rest, style, to);
                rest.len()
            }
        };
        last = rest.get(..bytes).and_then(|taken| taken.chars().last());
        rest = rest.get(bytes..).unwrap_or_default();
    }
}

fn with(outer: Style, inner: Style) -> Style {
    let style = outer.effects(outer.get_effects() | inner.get_effects());
    style.fg_color(inner.get_fg_color().or(outer.get_fg_color()))
}

/// The span or the text at the beginning of a text that `last` precedes. An incomplete text may
/// continue.
fn span(text: &str, last: Option<char>, is_complete: bool) -> Span<'_> {
    let Some(first) = text.chars().next() else { return Span::Text(0) };
    let plain = Span::Text(first.len_utf8());
    match first {
        '`' => code(text, is_complete),
        '*' | '_' | '~' => emphasis(text, last, is_complete),
        '[' => link(text, is_complete).unwrap_or(Span::Open),
        '!' if text.len() == 1 && !is_complete => Span::Open,
        '!' if text.get(1..).is_some_and(|rest| rest.starts_with('[')) => {
            match link(text.get(1..).unwrap_or_default(), is_complete) {
                Ok(Span::Link { text, target, bytes }) => {
                    Span::Link { text, target, bytes: bytes + 1 }
                }
                Ok(_) => plain,
                Err(IncompleteText) => Span::Open,
            }
        }
        '\\' => match text.chars().nth(1) {
            None if !is_complete => Span::Open,
            Some(c) if c.is_ascii_punctuation() => {
                Span::Escaped(text.get(1..=c.len_utf8()).unwrap_or_default())
            }
            _ => plain,
        },
        _ => {
            let is_mark = |c: char| matches!(c, '`' | '*' | '_' | '~' | '[' | '!' | '\\');
            let first = first.len_utf8();
            let more = text.get(first..).unwrap_or_default();
            Span::Text(first + more.find(is_mark).unwrap_or(more.len()))
        }
    }
}

/// Code between ticks.
fn code(text: &str, is_complete: bool) -> Span<'_> {
    let ticks = run(text);
    let fence = text.get(..ticks).unwrap_or_default();
    let inner = text.get(ticks..).unwrap_or_default();
    let mut from = 0;
    while let Some(found) = inner.get(from..).and_then(|rest| rest.find(fence)) {
        let (end, tail) = (from + found, inner.get(from + found..).unwrap_or_default());
        let closing = run(tail);
        // The run may go on.
        if !is_complete && tail.len() == closing {
            return Span::Open;
        }
        if closing == ticks {
            let code = inner.get(..end).unwrap_or_default();
            return Span::Code(unpadded(code), 2 * ticks + end);
        }
        from = end + closing;
    }
    if is_complete { Span::Text(ticks) } else { Span::Open }
}

/// Text between stars, underscores or tildes.
fn emphasis(text: &str, last: Option<char>, is_complete: bool) -> Span<'_> {
    let (mark, marks) = (text.chars().next().unwrap_or_default(), run(text));
    let inner = text.get(marks..).unwrap_or_default();
    if inner.is_empty() && !is_complete {
        return Span::Open;
    }
    let style = match (mark, marks) {
        ('~', 2) => Style::new().strikethrough(),
        ('*' | '_', 1) => Style::new().italic(),
        ('*' | '_', 2) => Style::new().bold(),
        ('*' | '_', 3) => Style::new().bold().italic(),
        _ => return Span::Text(marks),
    };
    let is_opening = inner.chars().next().is_some_and(|c| !c.is_whitespace())
        && !last.is_some_and(char::is_alphanumeric);
    if !is_opening {
        return Span::Text(marks);
    }
    match closing(inner, mark, marks, is_complete) {
        Ok(Some(end)) => Span::Styled(style, inner.get(..end).unwrap_or_default(), 2 * marks + end),
        Ok(None) if is_complete => Span::Text(marks),
        Ok(None) | Err(IncompleteText) => Span::Open,
    }
}

/// More of the text is needed.
struct IncompleteText;

/// Where a run of marks closes a span.
fn closing(
    inner: &str,
    mark: char,
    marks: usize,
    is_complete: bool,
) -> Result<Option<usize>, IncompleteText> {
    let (mut at, mut before) = (0, None);
    while let Some(rest) = inner.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(c) = rest.chars().next() else { break };
        let bytes = match c {
            '\\' => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            // Marks in code are no marks.
            '`' => match span(rest, before, is_complete) {
                Span::Code(_, bytes) => bytes,
                Span::Open => return Err(IncompleteText),
                _ => run(rest),
            },
            _ if c == mark => {
                let found = run(rest);
                let after = rest.get(found..).and_then(|rest| rest.chars().next());
                if after.is_none() && !is_complete {
                    return Err(IncompleteText);
                }
                let is_closing = before.is_some_and(|c: char| !c.is_whitespace())
                    && !(mark == '_' && after.is_some_and(char::is_alphanumeric));
                if found == marks && is_closing {
                    return Ok(Some(at));
                }
                found
            }
            _ => c.len_utf8(),
        };
        before = rest.get(..bytes).and_then(|taken| taken.chars().last());
        at += bytes;
    }
    Ok(None)
}

/// A link at a bracket.
fn link(text: &str, is_complete: bool) -> Result<Span<'_>, IncompleteText> {
    let undecided = |otherwise| if is_complete { Ok(otherwise) } else { Err(IncompleteText) };
    let Some(end) = text.find(']') else { return undecided(Span::Text(1)) };
    let label = text.get(1..end).unwrap_or_default();
    let after = text.get(end + 1..).unwrap_or_default();
    if after.is_empty() {
        return undecided(Span::Text(1));
    }
    let Some(target) = after.strip_prefix('(').filter(|_| !label.is_empty()) else {
        return Ok(Span::Text(1));
    };
    let Some(close) = target.find(')') else { return undecided(Span::Text(1)) };
    let target = target.get(..close).unwrap_or_default();
    if target.contains(' ') || target.is_empty() {
        return Ok(Span::Text(1));
    }
    Ok(Span::Link { text: label, target, bytes: end + 1 + 1 + close + 1 })
}

/// The bytes of the run of the first character, which is ASCII.
fn run(text: &str) -> usize {
    let first = text.chars().next();
    text.chars().take_while(|c| Some(*c) == first).count()
}

/// Code without the one space that separates it from its ticks.
fn unpadded(code: &str) -> &str {
    let inner = code.strip_prefix(' ').and_then(|code| code.strip_suffix(' '));
    inner.filter(|inner| !inner.trim().is_empty()).unwrap_or(code)
}

//! Markdown of models, rendered for a terminal while it arrives.

mod inline;
mod table;

use anstyle::{AnsiColor, Style};

use self::{inline::Inline, table::Table};
use super::wrap::Wrap;

const CODE: Style = AnsiColor::Cyan.on_default();
const FAINT: Style = Style::new().dimmed();
const HEADING: Style = Style::new().bold();

/// The columns by which code blocks are indented.
const CODE_INDENT: &str = "  ";

/// The longest rule, in columns.
const LONGEST_RULE: usize = 60;

/// Renders Markdown as it arrives. Text that was returned is never changed: it appears when its
/// meaning is certain, which is at the next word, at the end of a span such as `**bold**`, or at
/// the end of a table.
///
/// It is not a complete parser: unknown syntax remains as it was written, and line breaks stay.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    /// The part of the current line that is not rendered yet.
    line: String,
    block: Block,
    inline: Inline,
    wrap: Wrap,
    /// Whether anything was rendered, and whether a blank line precedes the next text.
    has_begun: bool,
    owes_blank: bool,
}

#[derive(Debug, Default)]
enum Block {
    /// The kind of the current line is not known yet.
    #[default]
    Unknown,
    /// In a line of text with inline markup.
    Text,
    /// Between fences; the fence that ends it, and whether a line of it has begun.
    Code {
        fence: String,
        in_line: bool,
    },
    Table(Table),
}

/// The kind of a line, by its beginning.
enum LineKind {
    Blank,
    /// Text after a marker: the printed text, the bytes that it takes, the style.
    Text {
        marker: String,
        bytes: usize,
        style: Style,
    },
    Fence(String),
    Rule,
    Row,
}

impl Markdown {
    /// Adds a piece; returns what can be printed now, for lines of this width.
    pub(super) fn push(&mut self, piece: &str, width: usize) -> String {
        for part in piece.split_inclusive('\n') {
            let (text, is_complete) = match part.strip_suffix('\n') {
                Some(text) => (text, true),
                None => (part, false),
            };
            self.line.push_str(text);
            self.render(is_complete, width);
        }
        self.wrap.take()
    }

    /// Renders the rest and ends the last line. The next piece begins another text.
    pub(super) fn finish(&mut self, width: usize) -> String {
        if matches!(self.block, Block::Text) || !self.line.is_empty() {
            self.render(true, width);
        }
        if matches!(self.block, Block::Code { in_line: true, .. }) {
            self.wrap.push("\n", width);
        }
        self.end_table(width);
        std::mem::take(self).wrap.take()
    }

    /// The filled columns of the current line.
    pub(super) fn column(&self) -> usize {
        self.wrap.column()
    }

    fn render(&mut self, is_complete: bool, width: usize) {
        match &mut self.block {
            Block::Code { .. } => return self.code(is_complete, width),
            Block::Table(_) if !is_complete => return,
            Block::Table(table) => {
                if is_row(&self.line) && table.add(&self.line) {
                    self.line.clear();
                    return;
                }
                self.end_table(width);
            }
            Block::Unknown | Block::Text => {}
        }
        if matches!(self.block, Block::Unknown) {
            let Some(kind) = kind(&self.line, is_complete) else { return };
            if !self.begin(kind, is_complete, width) {
                return;
            }
        }
        let ready = if is_complete { self.line.len() } else { self.inline.ready(&self.line) };
        let rest = self.line.split_off(ready);
        self.inline.render(&self.line, &mut self.wrap, width);
        self.line = rest;
        if is_complete {
            self.inline.end_line(&mut self.wrap, width);
            self.end_line(width);
        }
    }

    /// Begins a line of a kind. Returns whether text follows.
    fn begin(&mut self, kind: LineKind, is_complete: bool, width: usize) -> bool {
        if matches!(kind, LineKind::Text { .. } | LineKind::Rule | LineKind::Fence(_)) {
            self.end_gap(width);
        }
        match kind {
            LineKind::Text { marker, bytes, style } => {
                self.line.drain(..bytes);
                let hang = if marker.contains('│') {
                    marker.clone()
                } else {
                    " ".repeat(unicode_width::UnicodeWidthStr::width(marker.as_str()))
                };
                self.wrap.hang(hang);
                self.wrap.push(&marker, width);
                self.inline.begin_line(style);
                self.block = Block::Text;
                return true;
            }
            LineKind::Fence(fence) => {
                self.line.clear();
                self.block = Block::Code { fence, in_line: false };
                return false;
            }
            LineKind::Row => {
                if is_complete {
                    let mut table = Table::default();
                    table.add(&self.line);
                    self.line.clear();
                    self.block = Block::Table(table);
                }
                return false;
            }
            LineKind::Rule => {
                let rule = "─".repeat(width.min(LONGEST_RULE));
                self.wrap.push(&format!("{FAINT}{rule}{FAINT:#}\n"), width);
            }
            LineKind::Blank => self.owes_blank = self.has_begun,
        }
        self.line.clear();
        false
    }

    /// Begins the next text. Blank lines between two are one, and there are none around the whole.
    fn end_gap(&mut self, width: usize) {
        if std::mem::take(&mut self.owes_blank) {
            self.wrap.push("\n", width);
        }
        self.has_begun = true;
    }

    fn code(&mut self, is_complete: bool, width: usize) {
        let Block::Code { fence, in_line } = &mut self.block else { return };
        let is_fence = !*in_line && {
            let line = self.line.trim();
            line.starts_with(fence.as_str()) && line.chars().all(|c| fence.starts_with(c))
        };
        if is_fence && is_complete {
            self.line.clear();
            self.block = Block::Unknown;
            return;
        }
        // It may become the end.
        if !*in_line && !is_complete && fence.starts_with(self.line.trim()) || is_fence {
            return;
        }
        if !*in_line {
            let indent = self.line.len() - self.line.trim_start().len();
            self.wrap.hang(" ".repeat(CODE_INDENT.len() + indent + 2));
            self.wrap.push(CODE_INDENT, width);
            *in_line = true;
        }
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.wrap.push(&format!("{CODE}{line}{CODE:#}"), width);
        }
        if is_complete {
            *in_line = false;
            self.wrap.push("\n", width);
        }
    }

    fn end_table(&mut self, width: usize) {
        if let Block::Table(table) = std::mem::take(&mut self.block) {
            self.end_gap(width);
            for line in table.lines(width) {
                self.wrap.hang("");
                // Its lines fit already, and cells may contain spaces.
                self.wrap.push(&line, usize::MAX);
                self.wrap.push("\n", width);
            }
        }
    }

    fn end_line(&mut self, width: usize) {
        self.wrap.push("\n", width);
        self.block = Block::Unknown;
    }
}

/// Whether a line belongs to a table.
fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

/// The kind of a line; `None` if its beginning permits several.
fn kind(line: &str, is_complete: bool) -> Option<LineKind> {
    let start = line.trim_start_matches([' ', '\t']);
    let Some(first) = start.chars().next() else {
        return is_complete.then_some(LineKind::Blank);
    };
    let (run, after) = run(start);
    let is_of_marks = start.chars().all(|c| c == first || c == ' ');
    let marks = start.chars().filter(|c| *c == first).count();
    match first {
        '|' => return Some(LineKind::Row),
        '`' | '~' if run >= 3 && is_complete && !after.contains('`') => {
            return Some(LineKind::Fence(first.to_string().repeat(run)));
        }
        '-' | '*' | '_' if is_complete && is_of_marks && marks >= 3 => return Some(LineKind::Rule),
        '-' | '*' | '_' | '+' if !is_complete && is_of_marks => return None,
        _ => {}
    }
    let (marker, taken, style) = marker(start, is_complete)?;
    let indent = line.get(..line.len() - start.len()).unwrap_or_default();
    let marker = format!("{}{marker}", indent.replace('\t', "    "));
    Some(LineKind::Text { marker, bytes: indent.len() + taken, style })
}

/// The first run of one character, and the text after it.
fn run(start: &str) -> (usize, &str) {
    let first = start.chars().next();
    let after = start.trim_start_matches(|c| Some(c) == first);
    (start.chars().take_while(|c| Some(*c) == first).count(), after)
}

/// The marker of a line of text, as shown, the bytes that it replaces, and the style of the line;
/// `None` if the beginning permits several.
fn marker(start: &str, is_complete: bool) -> Option<(String, usize, Style)> {
    let plain = Style::new();
    let (run, after) = run(start);
    let space = after.len() - after.trim_start().len();
    let is_marker = |after: &str| after.starts_with([' ', '\t']);
    match start.chars().next() {
        // Enough to know that it is not a fence.
        Some('`' | '~') if !is_complete && (run >= 3 || after.is_empty()) => None,
        Some('#') if run <= 6 && is_marker(after) => Some((String::new(), run + space, HEADING)),
        Some('#') if run <= 6 && !is_complete && after.is_empty() => None,
        Some('-' | '*' | '+') if run == 1 && is_marker(after) => {
            Some(("• ".to_owned(), 1 + space, plain))
        }
        Some('>') if after.is_empty() && !is_complete => None,
        Some('>') => Some(("│ ".repeat(run), run + usize::from(after.starts_with(' ')), FAINT)),
        Some('0'..='9') => {
            let digits = start.chars().take_while(char::is_ascii_digit).count();
            let after = start.get(digits..).unwrap_or_default();
            let is_list = digits <= 9 && after.starts_with(['.', ')']);
            match after.get(1..) {
                _ if after.is_empty() && !is_complete && digits <= 9 => None,
                Some("") if is_list && !is_complete => None,
                Some(rest) if is_list && is_marker(rest) => {
                    let number = start.get(..=digits).unwrap_or_default();
                    Some((format!("{number} "), digits + 2, plain))
                }
                _ => Some((String::new(), 0, plain)),
            }
        }
        _ => Some((String::new(), 0, plain)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rendered(text: &str, width: usize, pieces: usize) -> String {
        let chars: Vec<char> = text.chars().collect();
        let mut markdown = Markdown::default();
        let mut out = String::new();
        for piece in chars.chunks(pieces) {
            out += &markdown.push(&piece.iter().collect::<String>(), width);
        }
        out + &markdown.finish(width)
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(&rendered(text, 40, 1)).to_string()
    }

    #[test]
    fn syntax_is_rendered_and_other_text_is_as_it_was() {
        for (text, shown) in [
            ("**/*.rs and 2 ** 3", "**/*.rs and 2 ** 3"),
            ("snake_case and __init__.py", "snake_case and init.py"),
            ("an *open one", "an *open one"),
            ("`a` ``b ` c`` `open", "a b ` c `open"),
            ("**bold `**` text**", "bold ** text"),
            (r"\*not\* a \` span", "*not* a ` span"),
            ("[1, 2] and a[0](x y)", "[1, 2] and a[0](x y)"),
            ("[text](http://a) ![alt](b.png)!", "text (http://a) alt (b.png)!"),
            ("[http://a](http://a)", "http://a"),
            ("#hash\n# Head", "#hash\nHead"),
            ("- a\n-b\n-- c\n+ d", "• a\n-b\n-- c\n• d"),
            ("10. ten\n1.5 is", "10. ten\n1.5 is"),
            ("---", "────────────────────────────────────────"),
            ("\n\na\n\n\nb\n\n", "a\n\nb"),
            ("> a\n> b", "│ a\n│ b"),
            ("```\n# no *md*\n\n  x\n```\nafter", "  # no *md*\n\n    x\nafter"),
            ("````\n```\n````", "  ```"),
            ("```\nopen", "  open"),
            ("~~~a\nopen", "  open"),
            ("| a pipe\nb", "| a pipe\nb"),
            ("|a|b|\n|-|-:|\n|1|`2`|\nend", "a  b\n────\n1  2\nend"),
            ("", ""),
        ] {
            assert_eq!(plain(text).trim_end_matches('\n'), shown, "{text:?}");
        }
    }

    #[test]
    fn a_long_table_is_wrapped_in_its_cells() {
        let text = "| name | meaning |\n|---|---|\n| turn | one user message until the answer of the model |";
        insta::assert_snapshot!(plain(text), @r"
        name  meaning
        ────────────────────────────────────────
        turn  one user message until the answer
              of the model
        ");
    }

    proptest! {
        /// Pieces of any size give the same, and no line is too long.
        #[test]
        fn pieces_do_not_matter(text in "[ab*_`~#>|\\[\\]()!\\\\.0-9 \n-]{0,60}", pieces in 1_usize..9) {
            let whole = rendered(&text, 30, 1000);
            prop_assert_eq!(&rendered(&text, 30, pieces), &whole);
            // Nothing but markup is removed; the language of a code block is markup.
            let letters = |text: &str| text.chars().filter(|c| matches!(c, 'a' | 'b')).count();
            let is_opening = |line: &str| {
                let line = line.trim_start();
                line.starts_with("```") || line.starts_with("~~~")
            };
            prop_assume!(!text.lines().any(|line| is_opening(line) && letters(line) > 0));
            let whole = anstream::adapter::strip_str(&whole).to_string();
            prop_assert_eq!(letters(&whole), letters(&text), "{}", whole);
        }
    }
}

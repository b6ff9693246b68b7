//! YAML as a small tree with positions: the subset that frontmatter needs.

use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};
use toolcrib_config::{Diagnostic, Located, Spot};

/// The depth limit of frontmatter. It bounds the stack use of dropping a tree.
const DEEPEST: usize = 32;

/// A node.
#[derive(Debug)]
pub(super) enum Node {
    /// A scalar of any type, as text; blank for `null`.
    Text(YamlText),
    /// A sequence.
    List(Vec<Located<Node>>),
    /// A mapping, in the order of the file.
    Map(Vec<(Located<Node>, Located<Node>)>),
    /// A reference to another node. Frontmatter does not need aliases; they are not resolved.
    Alias,
}

/// A scalar.
#[derive(Debug)]
pub(super) struct YamlText {
    pub(super) text: Arc<str>,
    /// The position of its first character, if the file contains the text literally on one line.
    pub(super) start: Option<Spot>,
}

/// A list or map that is still open.
enum OpenNode {
    List(Vec<Located<Node>>),
    Map { entries: Vec<(Located<Node>, Located<Node>)>, key: Option<Located<Node>> },
}

/// Parses the first document of a text that begins at a given line of a file. `None` if it is
/// empty.
pub(super) fn parse(
    yaml: &str,
    file: &Arc<str>,
    first_line: usize,
) -> Result<Option<Located<Node>>, Diagnostic> {
    let spot = |marker: &Marker| Spot {
        file: Arc::clone(file),
        line: first_line.saturating_sub(1) + marker.line(),
        column: marker.col() + 1,
    };
    let mut open: Vec<Located<OpenNode>> = Vec::new();
    let mut parser = Parser::new_from_str(yaml);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            Diagnostic::error(&spot(error.marker()), format!("this is not YAML: {}", error.info()))
                .help("a text with `: ` or ` #` in it must be quoted")
        })?;
        let at = spot(&span.start);
        let done = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == DEEPEST => {
                let message = format!("frontmatter may not nest deeper than {DEEPEST} levels");
                return Err(Diagnostic::error(&at, message));
            }
            Event::SequenceStart(..) => {
                open.push(Located { value: OpenNode::List(Vec::new()), at });
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Located { value: OpenNode::Map { entries: Vec::new(), key: None }, at });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Located { value: OpenNode::List(items), at }) => {
                    Located { value: Node::List(items), at }
                }
                Some(Located { value: OpenNode::Map { entries, .. }, at }) => {
                    Located { value: Node::Map(entries), at }
                }
                None => continue,
            },
            Event::Scalar(text, style, ..) => {
                Located { value: Node::Text(scalar(&text, style, span, &at)), at }
            }
            Event::Alias(_) => Located { value: Node::Alias, at },
            Event::DocumentEnd | Event::StreamEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => continue,
        };
        match open.last_mut().map(|open| &mut open.value) {
            None => return Ok(Some(done)),
            Some(OpenNode::List(items)) => items.push(done),
            Some(OpenNode::Map { entries, key }) => match key.take() {
                None => *key = Some(done),
                Some(key) => entries.push((key, done)),
            },
        }
    }
    Ok(None)
}

fn scalar(text: &str, style: ScalarStyle, span: Span, at: &Spot) -> YamlText {
    let quotes = match style {
        ScalarStyle::Plain => Some(0),
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Some(1),
        ScalarStyle::Literal | ScalarStyle::Folded => None,
    };
    let as_written = |quotes: &usize| text.chars().count() + 2 * quotes == span.len();
    let start =
        quotes.filter(as_written).map(|quotes| Spot { column: at.column + quotes, ..at.clone() });
    let null = style == ScalarStyle::Plain && matches!(text, "~" | "null" | "Null" | "NULL");
    YamlText { text: if null { Arc::default() } else { text.into() }, start }
}

//! The first document of a YAML text, part by part: each reader builds its own values from it.

use std::borrow::Cow;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

/// A part of a document, with the values that its own parts were made into.
#[derive(Debug)]
pub enum YamlPart<'t, T> {
    /// A scalar of any type.
    Scalar(YamlScalar<'t>),
    /// A sequence.
    List(Vec<T>),
    /// A mapping, in the order of the file. Keys can be of any type, and can be repeated.
    Map(Vec<(T, T)>),
    /// A reference to the part with this anchor.
    Alias(usize),
}

/// A scalar, as text.
#[derive(Debug)]
pub struct YamlScalar<'t> {
    /// Its text.
    pub text: Cow<'t, str>,
    /// Whether it has no quotes, so that its type depends on the text.
    pub is_plain: bool,
    /// Whether a tag says that it is a text.
    pub is_tagged_text: bool,
    /// The characters before its text, if the file has the text literally on one line.
    pub quotes: Option<usize>,
}

impl YamlScalar<'_> {
    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.is_plain && matches!(&*self.text, "" | "~" | "null" | "Null" | "NULL")
    }
}

/// Where a part begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YamlPlace {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The number of its anchor; 0 without one.
    pub anchor: usize,
}

/// Why a text was not read.
#[derive(Debug)]
pub enum YamlError<E> {
    /// It is not YAML.
    Syntax {
        /// The place.
        at: YamlPlace,
        /// The parser's text.
        info: String,
    },
    /// It nests deeper than the limit.
    Depth(YamlPlace),
    /// The reader's own error.
    Part(E),
}

/// A list or map that is still open.
enum OpenPart<T> {
    List(Vec<T>),
    Map { entries: Vec<(T, T)>, key: Option<T> },
}

/// Reads the first document of a text, of at most `max_depth` open lists and maps: `make` makes a value of
/// each part, once the parts within it have values. `None` if the text is empty.
///
/// Aliases are not resolved, and tags other than `!!str` are ignored.
///
/// # Errors
/// [`YamlError`], at the first wrong part.
pub fn read_yaml<T, E>(
    text: &str,
    max_depth: usize,
    mut make: impl FnMut(YamlPart<'_, T>, YamlPlace) -> Result<T, E>,
) -> Result<Option<T>, YamlError<E>> {
    let mut open: Vec<(YamlPlace, OpenPart<T>)> = Vec::new();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| YamlError::Syntax {
            at: place(error.marker(), 0),
            info: error.info().to_owned(),
        })?;
        let (at, part) = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == max_depth => {
                return Err(YamlError::Depth(place(&span.start, 0)));
            }
            Event::SequenceStart(anchor, _) => {
                open.push((place(&span.start, anchor), OpenPart::List(Vec::new())));
                continue;
            }
            Event::MappingStart(anchor, _) => {
                let map = OpenPart::Map { entries: Vec::new(), key: None };
                open.push((place(&span.start, anchor), map));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some((at, OpenPart::List(items))) => (at, YamlPart::List(items)),
                Some((at, OpenPart::Map { entries, .. })) => (at, YamlPart::Map(entries)),
                None => continue,
            },
            Event::Scalar(text, style, anchor, tag) => {
                let is_tagged_text = tag.is_some_and(|tag| tag.suffix == "str");
                let scalar = scalar(text, style, is_tagged_text, span);
                (place(&span.start, anchor), YamlPart::Scalar(scalar))
            }
            Event::Alias(anchor) => (place(&span.start, 0), YamlPart::Alias(anchor)),
            Event::DocumentEnd | Event::StreamEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => continue,
        };
        let made = make(part, at).map_err(YamlError::Part)?;
        match open.last_mut().map(|(_, open)| open) {
            None => return Ok(Some(made)),
            Some(OpenPart::List(items)) => items.push(made),
            Some(OpenPart::Map { entries, key }) => match key.take() {
                None => *key = Some(made),
                Some(key) => entries.push((key, made)),
            },
        }
    }
    Ok(None)
}

fn place(marker: &Marker, anchor: usize) -> YamlPlace {
    YamlPlace { line: marker.line(), column: marker.col() + 1, anchor }
}

fn scalar(
    text: Cow<'_, str>,
    style: ScalarStyle,
    is_tagged_text: bool,
    span: Span,
) -> YamlScalar<'_> {
    let quotes = match style {
        ScalarStyle::Plain => Some(0),
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Some(1),
        ScalarStyle::Literal | ScalarStyle::Folded => None,
    };
    let is_literal = |quotes: &usize| text.chars().count() + 2 * quotes == span.len();
    let quotes = quotes.filter(is_literal);
    YamlScalar { text, is_plain: style == ScalarStyle::Plain, is_tagged_text, quotes }
}

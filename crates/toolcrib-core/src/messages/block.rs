//! Non-text parts of a result.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{internal::counted::counted, text::hidden::write_name};

/// Further fields that a protocol gives a block, such as MCP's `annotations` and `_meta`. Clients of
/// a gateway receive them; models do not.
pub type BlockFields = Option<Arc<Map<String, Value>>>;

/// A part of a result in addition to its text: an image, audio, a resource, a link.
///
/// Models that support the part receive it; every model reads its [reference](Self::reference) or,
/// for a text resource, the text. Bytes are never written into a text as base64.
///
/// Does not implement `Serialize`, because serializing a block by itself would put its bytes into a
/// text.
///
/// ```
/// use toolcrib_core::ContentBlock;
///
/// let table = ContentBlock::text("file:///report.csv", "city,days\nOslo,3").media_type("text/csv");
/// assert_eq!(table.reference(), "[text file:///report.csv, text/csv, 16 chars]");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContentBlock {
    /// A part of the result's own text, in its place among the other blocks. Only for results
    /// whose text does not come first, or has several parts; models read it in the result's text.
    #[non_exhaustive]
    Paragraph {
        /// The text.
        text: Arc<str>,
        /// Further fields.
        fields: BlockFields,
    },
    /// An image.
    #[non_exhaustive]
    Image {
        /// The media type, such as `image/png`.
        media_type: Arc<str>,
        /// The image's bytes.
        data: Arc<[u8]>,
        /// Further fields.
        fields: BlockFields,
    },
    /// Audio.
    #[non_exhaustive]
    Audio {
        /// The media type, such as `audio/wav`.
        media_type: Arc<str>,
        /// The audio's bytes.
        data: Arc<[u8]>,
        /// Further fields.
        fields: BlockFields,
    },
    /// An embedded text with its URI. It counts towards the result's characters.
    #[non_exhaustive]
    Text {
        /// The URI.
        uri: Arc<str>,
        /// The media type, if known.
        media_type: Option<Arc<str>>,
        /// The text.
        text: Arc<str>,
        /// Further fields.
        fields: BlockFields,
    },
    /// Embedded bytes with their URI.
    #[non_exhaustive]
    Binary {
        /// The URI.
        uri: Arc<str>,
        /// The media type, if known.
        media_type: Option<Arc<str>>,
        /// The bytes.
        data: Arc<[u8]>,
        /// Further fields.
        fields: BlockFields,
    },
    /// A link to something that is not embedded. Its existence is not checked.
    #[non_exhaustive]
    Link {
        /// The URI.
        uri: Arc<str>,
        /// The link's name.
        name: Arc<str>,
        /// The media type of the target, if known.
        media_type: Option<Arc<str>>,
        /// Further fields.
        fields: BlockFields,
    },
}

impl ContentBlock {
    /// An image of the given media type.
    pub fn image(media_type: impl Into<Arc<str>>, data: impl Into<Arc<[u8]>>) -> Self {
        Self::Image { media_type: media_type.into(), data: data.into(), fields: None }
    }

    /// Audio of the given media type.
    pub fn audio(media_type: impl Into<Arc<str>>, data: impl Into<Arc<[u8]>>) -> Self {
        Self::Audio { media_type: media_type.into(), data: data.into(), fields: None }
    }

    /// A text with its URI.
    pub fn text(uri: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self::Text { uri: uri.into(), media_type: None, text: text.into(), fields: None }
    }

    /// Bytes with their URI.
    pub fn binary(uri: impl Into<Arc<str>>, data: impl Into<Arc<[u8]>>) -> Self {
        Self::Binary { uri: uri.into(), media_type: None, data: data.into(), fields: None }
    }

    /// A link to a resource.
    pub fn link(uri: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self::Link { uri: uri.into(), name: name.into(), media_type: None, fields: None }
    }

    /// A part of the result's own text.
    pub fn paragraph(text: impl Into<Arc<str>>) -> Self {
        Self::Paragraph { text: text.into(), fields: None }
    }

    /// Sets the further fields of a protocol.
    #[must_use]
    pub fn with_fields(mut self, of: Map<String, Value>) -> Self {
        *self.fields_mut() = (!of.is_empty()).then(|| Arc::new(of));
        self
    }

    /// The further fields of a protocol, if there are any.
    pub fn fields(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Paragraph { fields, .. }
            | Self::Image { fields, .. }
            | Self::Audio { fields, .. }
            | Self::Text { fields, .. }
            | Self::Binary { fields, .. }
            | Self::Link { fields, .. } => fields.as_deref(),
        }
    }

    fn fields_mut(&mut self) -> &mut BlockFields {
        match self {
            Self::Paragraph { fields, .. }
            | Self::Image { fields, .. }
            | Self::Audio { fields, .. }
            | Self::Text { fields, .. }
            | Self::Binary { fields, .. }
            | Self::Link { fields, .. } => fields,
        }
    }

    /// Sets the media type, such as `text/csv`.
    #[must_use]
    pub fn media_type(mut self, of: impl Into<Arc<str>>) -> Self {
        let of = of.into();
        match &mut self {
            Self::Image { media_type, .. } | Self::Audio { media_type, .. } => *media_type = of,
            Self::Text { media_type, .. }
            | Self::Binary { media_type, .. }
            | Self::Link { media_type, .. } => *media_type = Some(of),
            Self::Paragraph { .. } => {}
        }
        self
    }

    /// One line that replaces the block where the block itself cannot be used: kind and size. It is
    /// one line whatever the block contains: invisible characters are removed, and line feeds
    /// become spaces.
    pub fn reference(&self) -> String {
        match self {
            Self::Image { media_type, data, .. } => {
                format!("[image {}, {}]", OneLine(media_type), bytes(data))
            }
            Self::Audio { media_type, data, .. } => {
                format!("[audio {}, {}]", OneLine(media_type), bytes(data))
            }
            Self::Text { text, .. } => {
                format!("[{}, {} chars]", self.address(), text.chars().count())
            }
            Self::Binary { data, .. } => format!("[{}, {}]", self.address(), bytes(data)),
            Self::Link { .. } => format!("[{}]", self.address()),
            Self::Paragraph { text, .. } => format!("[text, {} chars]", text.chars().count()),
        }
    }

    /// The text of the block for every model: a paragraph's text, a text resource's text after its
    /// URI, otherwise the [reference](Self::reference).
    pub fn as_read(&self) -> String {
        match self {
            Self::Paragraph { text, .. } => text.to_string(),
            Self::Text { text, .. } => format!("[{}]\n{text}", self.address()),
            other => other.reference(),
        }
    }

    /// The bytes of a binary block; empty for a text and a link.
    pub fn data(&self) -> &[u8] {
        match self {
            Self::Image { data, .. } | Self::Audio { data, .. } | Self::Binary { data, .. } => data,
            Self::Paragraph { .. } | Self::Text { .. } | Self::Link { .. } => &[],
        }
    }

    /// The number of characters of its texts, including URIs, names, media types and further
    /// fields.
    pub fn chars(&self) -> usize {
        let texts: [Option<&str>; 3] = match self {
            Self::Paragraph { text, .. } => [None, None, Some(text)],
            Self::Image { media_type, .. } | Self::Audio { media_type, .. } => {
                [Some(media_type), None, None]
            }
            Self::Text { uri, media_type, text, .. } => {
                [Some(uri), media_type.as_deref(), Some(text)]
            }
            Self::Binary { uri, media_type, .. } => [Some(uri), media_type.as_deref(), None],
            Self::Link { uri, name, media_type, .. } => {
                [Some(uri), media_type.as_deref(), Some(name)]
            }
        };
        let fields = self.fields().map_or(0, |fields| fields.iter().map(chars_of_entry).sum());
        texts.into_iter().flatten().map(|text| text.chars().count()).sum::<usize>() + fields
    }

    /// The block with a function applied to each of its texts, for redaction and sanitizing.
    #[must_use]
    pub fn map_texts(mut self, mut change: impl FnMut(&str) -> String) -> Self {
        let fields = self.fields_mut();
        *fields = fields.take().map(|fields| {
            let entries = fields.iter();
            Arc::new(
                entries.map(|(key, value)| (key.clone(), mapped(value, &mut change))).collect(),
            )
        });
        let mut texts: [Option<&mut Arc<str>>; 3] = match &mut self {
            Self::Paragraph { text, .. } => [None, None, Some(text)],
            Self::Image { media_type, .. } | Self::Audio { media_type, .. } => {
                [Some(media_type), None, None]
            }
            Self::Text { uri, media_type, text, .. } => {
                [Some(uri), media_type.as_mut(), Some(text)]
            }
            Self::Binary { uri, media_type, .. } => [Some(uri), media_type.as_mut(), None],
            Self::Link { uri, name, media_type, .. } => {
                [Some(uri), Some(name), media_type.as_mut()]
            }
        };
        for text in texts.iter_mut().flatten() {
            **text = change(text).into();
        }
        self
    }

    /// Kind, URI and media type.
    fn address(&self) -> String {
        let known = |media_type: &Option<Arc<str>>| match media_type {
            Some(media_type) => format!(", {}", OneLine(media_type)),
            None => String::new(),
        };
        match self {
            Self::Paragraph { .. } => "text".to_owned(),
            Self::Image { media_type, .. } => format!("image {}", OneLine(media_type)),
            Self::Audio { media_type, .. } => format!("audio {}", OneLine(media_type)),
            Self::Text { uri, media_type, .. } => {
                format!("text {}{}", OneLine(uri), known(media_type))
            }
            Self::Binary { uri, media_type, .. } => {
                let media_type = media_type.as_deref().unwrap_or("of unknown type");
                format!("resource {}, {}", OneLine(uri), OneLine(media_type))
            }
            Self::Link { uri, name, media_type, .. } => {
                format!("link {}: {}{}", OneLine(name), OneLine(uri), known(media_type))
            }
        }
    }
}

impl fmt::Debug for ContentBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Omits the bytes.
        f.write_str(&self.reference())
    }
}

/// A field's value with a function applied to each of its texts, keys excluded: the protocol gives
/// them. Values come from a parser, which limits their depth.
fn mapped(value: &Value, change: &mut impl FnMut(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => items.iter().map(|item| mapped(item, change)).collect(),
        Value::Object(entries) => Value::Object(
            entries.iter().map(|(key, value)| (change(key), mapped(value, change))).collect(),
        ),
        other => other.clone(),
    }
}

fn chars_of_entry((key, value): (&String, &Value)) -> usize {
    key.chars().count() + chars_of(value)
}

fn chars_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.iter().map(chars_of).sum(),
        Value::Object(entries) => entries.iter().map(chars_of_entry).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
    }
}

/// Displays a text within one line.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(self.0, f)
    }
}

fn bytes(data: &[u8]) -> String {
    counted(data.len(), "byte")
}

/// A block as serialized in a message: bytes as their length.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SerializedBlock<'a> {
    Paragraph {
        text: &'a str,
    },
    Image {
        media_type: &'a str,
        bytes: usize,
    },
    Audio {
        media_type: &'a str,
        bytes: usize,
    },
    Text {
        uri: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<&'a str>,
        text: &'a str,
    },
    Binary {
        uri: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<&'a str>,
        bytes: usize,
    },
    Link {
        uri: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<&'a str>,
    },
}

impl<'a> From<&'a ContentBlock> for SerializedBlock<'a> {
    fn from(block: &'a ContentBlock) -> Self {
        match block {
            ContentBlock::Paragraph { text, .. } => Self::Paragraph { text },
            ContentBlock::Image { media_type, data, .. } => {
                Self::Image { media_type, bytes: data.len() }
            }
            ContentBlock::Audio { media_type, data, .. } => {
                Self::Audio { media_type, bytes: data.len() }
            }
            ContentBlock::Text { uri, media_type, text, .. } => {
                Self::Text { uri, media_type: media_type.as_deref(), text }
            }
            ContentBlock::Binary { uri, media_type, data, .. } => {
                Self::Binary { uri, media_type: media_type.as_deref(), bytes: data.len() }
            }
            ContentBlock::Link { uri, name, media_type, .. } => {
                Self::Link { uri, name, media_type: media_type.as_deref() }
            }
        }
    }
}

/// Serializes the blocks of a message.
pub(crate) fn write_blocks<S: Serializer>(
    blocks: &Arc<[ContentBlock]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(blocks.iter().map(SerializedBlock::from))
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use super::*;

    struct Probe<T>(PhantomData<T>);

    /// Found where the method below is not.
    trait IsNoData {
        fn is_data(&self) -> bool {
            false
        }
    }

    impl<T> IsNoData for Probe<T> {}

    impl<T: Serialize> Probe<T> {
        fn is_data(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_block_is_no_data_alone_or_within_something() {
        assert!(Probe::<Option<String>>(PhantomData).is_data());
        assert!(!Probe::<ContentBlock>(PhantomData).is_data());
        assert!(!Probe::<Option<ContentBlock>>(PhantomData).is_data());
        assert!(!Probe::<(String, ContentBlock)>(PhantomData).is_data());
    }

    #[test]
    fn a_reference_is_one_line_whatever_the_block_holds() {
        let odd = "a\nb\tc\r\u{2028}d\u{1b}[31m\u{202e}e\0";
        let plain = "a b cd[31me";
        let blocks = [
            (ContentBlock::image(odd, []), format!("[image {plain}, 0 bytes]")),
            (ContentBlock::audio(odd, *b"x"), format!("[audio {plain}, 1 byte]")),
            (
                ContentBlock::text(odd, "1\n2").media_type(odd),
                format!("[text {plain}, {plain}, 3 chars]"),
            ),
            (
                ContentBlock::binary(odd, *b"xy").media_type(odd),
                format!("[resource {plain}, {plain}, 2 bytes]"),
            ),
            (
                ContentBlock::link(odd, odd).media_type(odd),
                format!("[link {plain}: {plain}, {plain}]"),
            ),
        ];
        for (block, reference) in blocks {
            assert_eq!(block.reference(), reference);
            assert_eq!(format!("{block:?}"), reference);
        }
        let text = ContentBlock::text(odd, "1\n2").as_read();
        assert_eq!(text, format!("[text {plain}]\n1\n2"));
    }
}

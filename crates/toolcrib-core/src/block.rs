//! Non-text parts of a result.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};

use crate::hidden::is_hidden;

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
    /// An image.
    #[non_exhaustive]
    Image {
        /// The media type, such as `image/png`.
        media_type: Arc<str>,
        /// The image's bytes.
        data: Arc<[u8]>,
    },
    /// Audio.
    #[non_exhaustive]
    Audio {
        /// The media type, such as `audio/wav`.
        media_type: Arc<str>,
        /// The audio's bytes.
        data: Arc<[u8]>,
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
    },
}

impl ContentBlock {
    /// An image of the given media type.
    pub fn image(media_type: impl Into<Arc<str>>, data: impl Into<Arc<[u8]>>) -> Self {
        Self::Image { media_type: media_type.into(), data: data.into() }
    }

    /// Audio of the given media type.
    pub fn audio(media_type: impl Into<Arc<str>>, data: impl Into<Arc<[u8]>>) -> Self {
        Self::Audio { media_type: media_type.into(), data: data.into() }
    }

    /// A text with its URI.
    pub fn text(uri: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self::Text { uri: uri.into(), media_type: None, text: text.into() }
    }

    /// Bytes with their URI.
    pub fn binary(uri: impl Into<Arc<str>>, data: impl Into<Arc<[u8]>>) -> Self {
        Self::Binary { uri: uri.into(), media_type: None, data: data.into() }
    }

    /// A link.
    pub fn link(uri: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self::Link { uri: uri.into(), name: name.into(), media_type: None }
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
        }
        self
    }

    /// One line that replaces the block where the block itself cannot be used: kind and size. It is
    /// one line whatever the block contains: invisible characters are removed, and line feeds
    /// become spaces.
    pub fn reference(&self) -> String {
        match self {
            Self::Image { media_type, data } => {
                format!("[image {}, {}]", OneLine(media_type), bytes(data))
            }
            Self::Audio { media_type, data } => {
                format!("[audio {}, {}]", OneLine(media_type), bytes(data))
            }
            Self::Text { text, .. } => {
                format!("[{}, {} chars]", self.address(), text.chars().count())
            }
            Self::Binary { data, .. } => format!("[{}, {}]", self.address(), bytes(data)),
            Self::Link { .. } => format!("[{}]", self.address()),
        }
    }

    /// The text of the block for every model: a text resource's text after its URI, otherwise the
    /// [reference](Self::reference).
    pub fn as_read(&self) -> String {
        match self {
            Self::Text { text, .. } => format!("[{}]\n{text}", self.address()),
            other => other.reference(),
        }
    }

    /// The bytes of a binary block; empty for a text and a link.
    pub fn data(&self) -> &[u8] {
        match self {
            Self::Image { data, .. } | Self::Audio { data, .. } | Self::Binary { data, .. } => data,
            Self::Text { .. } | Self::Link { .. } => &[],
        }
    }

    /// The number of characters of its texts, including URIs, names and media types.
    pub fn chars(&self) -> usize {
        let texts: [Option<&str>; 3] = match self {
            Self::Image { media_type, .. } | Self::Audio { media_type, .. } => {
                [Some(media_type), None, None]
            }
            Self::Text { uri, media_type, text } => [Some(uri), media_type.as_deref(), Some(text)],
            Self::Binary { uri, media_type, .. } => [Some(uri), media_type.as_deref(), None],
            Self::Link { uri, name, media_type } => [Some(uri), media_type.as_deref(), Some(name)],
        };
        texts.into_iter().flatten().map(|text| text.chars().count()).sum()
    }

    /// The block with a function applied to each of its texts, for redaction and sanitizing.
    #[must_use]
    pub fn map_texts(self, mut change: impl FnMut(&str) -> String) -> Self {
        let mut change = |text: Arc<str>| Arc::from(change(&text));
        match self {
            Self::Image { media_type, data } => {
                Self::Image { media_type: change(media_type), data }
            }
            Self::Audio { media_type, data } => {
                Self::Audio { media_type: change(media_type), data }
            }
            Self::Text { uri, media_type, text } => Self::Text {
                uri: change(uri),
                media_type: media_type.map(&mut change),
                text: change(text),
            },
            Self::Binary { uri, media_type, data } => {
                Self::Binary { uri: change(uri), media_type: media_type.map(change), data }
            }
            Self::Link { uri, name, media_type } => Self::Link {
                uri: change(uri),
                name: change(name),
                media_type: media_type.map(change),
            },
        }
    }

    /// Kind, URI and media type.
    fn address(&self) -> String {
        let known = |media_type: &Option<Arc<str>>| match media_type {
            Some(media_type) => format!(", {}", OneLine(media_type)),
            None => String::new(),
        };
        match self {
            Self::Image { media_type, .. } => format!("image {}", OneLine(media_type)),
            Self::Audio { media_type, .. } => format!("audio {}", OneLine(media_type)),
            Self::Text { uri, media_type, .. } => {
                format!("text {}{}", OneLine(uri), known(media_type))
            }
            Self::Binary { uri, media_type, .. } => {
                let media_type = media_type.as_deref().unwrap_or("of unknown type");
                format!("resource {}, {}", OneLine(uri), OneLine(media_type))
            }
            Self::Link { uri, name, media_type } => {
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

/// Displays a text within one line.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        let mut chars = self.0.chars().peekable();
        let mut last = None;
        while let Some(c) = chars.next() {
            if matches!(c, '\n' | '\t') {
                f.write_char(' ')?;
            } else if !is_hidden(last, c, chars.peek().copied()) {
                f.write_char(c)?;
            }
            last = Some(c);
        }
        Ok(())
    }
}

fn bytes(data: &[u8]) -> String {
    match data.len() {
        1 => "1 byte".to_owned(),
        length => format!("{length} bytes"),
    }
}

/// A block as serialized in a message: bytes as their length.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Written<'a> {
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

impl<'a> From<&'a ContentBlock> for Written<'a> {
    fn from(block: &'a ContentBlock) -> Self {
        match block {
            ContentBlock::Image { media_type, data } => {
                Self::Image { media_type, bytes: data.len() }
            }
            ContentBlock::Audio { media_type, data } => {
                Self::Audio { media_type, bytes: data.len() }
            }
            ContentBlock::Text { uri, media_type, text } => {
                Self::Text { uri, media_type: media_type.as_deref(), text }
            }
            ContentBlock::Binary { uri, media_type, data } => {
                Self::Binary { uri, media_type: media_type.as_deref(), bytes: data.len() }
            }
            ContentBlock::Link { uri, name, media_type } => {
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
    serializer.collect_seq(blocks.iter().map(Written::from))
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

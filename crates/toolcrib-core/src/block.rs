//! Parts of a result that are not plain text.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};

/// A part of a result beside its text: an image, a sound, a resource, a link.
///
/// A model that takes such a part gets it; every model reads its [reference](Self::reference) or,
/// of a text resource, the text. Bytes are never written into a text as base64.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// An image.
    Image {
        /// Its media type, such as `image/png`.
        media_type: Arc<str>,
        /// Its bytes. Serialised as their number.
        #[serde(rename = "bytes", serialize_with = "length")]
        data: Arc<[u8]>,
    },
    /// A sound.
    Audio {
        /// Its media type, such as `audio/wav`.
        media_type: Arc<str>,
        /// Its bytes. Serialised as their number.
        #[serde(rename = "bytes", serialize_with = "length")]
        data: Arc<[u8]>,
    },
    /// A text that is embedded with its address. It counts towards the result's characters.
    Text {
        /// Its address.
        uri: Arc<str>,
        /// The text.
        text: Arc<str>,
    },
    /// Bytes that are embedded with their address.
    Binary {
        /// Their address.
        uri: Arc<str>,
        /// Their media type, where it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<Arc<str>>,
        /// The bytes. Serialised as their number.
        #[serde(rename = "bytes", serialize_with = "length")]
        data: Arc<[u8]>,
    },
    /// The address of something that is not embedded. Nobody has looked whether it is there.
    Link {
        /// The address.
        uri: Arc<str>,
        /// What it is called.
        name: Arc<str>,
    },
}

impl ContentBlock {
    /// An image of that media type.
    pub fn image(media_type: impl Into<Arc<str>>, data: impl Into<Arc<[u8]>>) -> Self {
        Self::Image { media_type: media_type.into(), data: data.into() }
    }

    /// A sound of that media type.
    pub fn audio(media_type: impl Into<Arc<str>>, data: impl Into<Arc<[u8]>>) -> Self {
        Self::Audio { media_type: media_type.into(), data: data.into() }
    }

    /// A text with its address.
    pub fn text(uri: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self::Text { uri: uri.into(), text: text.into() }
    }

    /// A link.
    pub fn link(uri: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self::Link { uri: uri.into(), name: name.into() }
    }

    /// One line that stands for the block where the block itself cannot: what it is, and how
    /// large.
    pub fn reference(&self) -> String {
        match self {
            Self::Image { media_type, data } => format!("[image {media_type}, {}]", bytes(data)),
            Self::Audio { media_type, data } => format!("[audio {media_type}, {}]", bytes(data)),
            Self::Text { uri, text } => format!("[text {uri}, {} chars]", text.chars().count()),
            Self::Binary { uri, media_type, data } => {
                let media_type = media_type.as_deref().unwrap_or("of unknown type");
                format!("[resource {uri}, {media_type}, {}]", bytes(data))
            }
            Self::Link { uri, name } => format!("[link {name}: {uri}]"),
        }
    }

    /// What every model reads of the block: the text of a text resource below its address, else
    /// the [reference](Self::reference).
    pub fn as_read(&self) -> String {
        match self {
            Self::Text { uri, text } => format!("[text {uri}]\n{text}"),
            other => other.reference(),
        }
    }

    /// The block with each of its texts put through a function, as redaction and sanitising do.
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
            Self::Text { uri, text } => Self::Text { uri: change(uri), text: change(text) },
            Self::Binary { uri, media_type, data } => {
                Self::Binary { uri: change(uri), media_type: media_type.map(change), data }
            }
            Self::Link { uri, name } => Self::Link { uri: change(uri), name: change(name) },
        }
    }
}

impl fmt::Debug for ContentBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the bytes.
        f.write_str(&self.reference())
    }
}

fn bytes(data: &[u8]) -> String {
    match data.len() {
        1 => "1 byte".to_owned(),
        length => format!("{length} bytes"),
    }
}

fn length<S: Serializer>(data: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(data.len()).unwrap_or(u64::MAX))
}

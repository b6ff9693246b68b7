//! The images that a model accepts, and those of a conversation that it is not shown.

use super::info::{ImageInfo, InvalidImageError};
use crate::messages::{block::ContentBlock, message::Message};

/// The images that a vendor accepts. All of the images of a request count, also those of earlier
/// messages, since each request contains the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimits {
    /// The media types.
    pub media_types: &'static [&'static str],
    /// Whether a GIF may have several frames.
    pub animated_gif: bool,
    /// The maximum size of one image in bytes, before it is encoded.
    pub max_bytes: usize,
    /// The maximum size of all images in bytes, encoded in base64.
    pub max_total_bytes: usize,
    /// The maximum width and height in pixels.
    pub max_side: u32,
    /// The maximum number of images.
    pub max_count: usize,
    /// The number of images, of which none may be larger than the second value in pixels, if there
    /// are more of them.
    pub large: Option<(usize, u32)>,
}

impl ImageLimits {
    /// The maximum number of pixels of one image, for every vendor. A small file may contain many
    /// more, which would fill the memory of the server that decodes it. The value is Pillow's limit
    /// for such a "decompression bomb", `2 * Image.MAX_IMAGE_PIXELS`.
    pub const MAX_PIXELS: u64 = 178_956_970;

    /// No limits, but for the four media types and [`MAX_PIXELS`](Self::MAX_PIXELS).
    pub const NONE: Self = Self {
        media_types: &["image/png", "image/jpeg", "image/gif", "image/webp"],
        animated_gif: true,
        max_bytes: usize::MAX,
        max_total_bytes: usize::MAX,
        max_side: u32::MAX,
        max_count: usize::MAX,
        large: None,
    };
}

/// Whether a model can see images, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSupport {
    /// Whether it sees images; `None` if that is not known: then they are sent.
    pub sees: Option<bool>,
    /// Whether images in results of tools are sent, not only those of the user.
    pub in_results: bool,
    /// The images that its vendor accepts.
    pub limits: ImageLimits,
}

impl ImageSupport {
    /// A model that sees no images.
    pub const BLIND: Self =
        Self { sees: Some(false), in_results: false, limits: ImageLimits::NONE };

    /// Judges the images of a conversation, in order: the first ones within the limits are shown.
    /// Messages that are appended change nothing for earlier ones, so a vendor's cached prefix stays
    /// valid.
    pub fn judge(&self, messages: &[Message]) -> JudgedImages {
        let mut counted = CountedImages { support: self, count: 0, bytes: 0, has_large: false };
        let mut judged = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            let blocks = match message {
                Message::Tool { .. } if !self.in_results => continue,
                message => message.blocks(),
            };
            if blocks.iter().any(is_image) {
                let blocks = blocks.iter().map(|block| counted.judge(block)).collect();
                judged.push(JudgedMessage { at, blocks });
            }
        }
        JudgedImages(judged)
    }
}

impl Default for ImageSupport {
    fn default() -> Self {
        Self::BLIND
    }
}

fn is_image(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Image { .. })
}

/// Whether each image of a conversation is shown to a model. Made by [`ImageSupport::judge`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JudgedImages(Vec<JudgedMessage>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct JudgedMessage {
    /// The position of the message.
    at: usize,
    blocks: Vec<Option<Result<ImageInfo, ImageRefusal>>>,
}

impl JudgedImages {
    /// Whether no message has images that may be sent.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The judgments of the blocks of the message at a position, in order; `None` for a block that is
    /// not an image. Empty for a message without images, and for results of tools whose images are
    /// not sent.
    pub fn of(&self, message: usize) -> &[Option<Result<ImageInfo, ImageRefusal>>] {
        let found = self.0.binary_search_by_key(&message, |judged| judged.at).ok();
        found.and_then(|found| self.0.get(found)).map_or(&[], |judged| &judged.blocks)
    }
}

/// The reason why a model is not shown an image, as the predicate of a sentence about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageRefusal {
    /// The model sees no images.
    #[error("the model does not see images")]
    Blind,
    /// The bytes are not a whole image of a known format.
    #[error(transparent)]
    Invalid(#[from] InvalidImageError),
    /// The vendor does not accept the format.
    #[error("the model's vendor does not accept {media_type}, but: {}", .accepted.join(", "))]
    MediaType {
        /// The media type.
        media_type: &'static str,
        /// The media types that it accepts.
        accepted: &'static [&'static str],
    },
    /// The vendor accepts only one frame.
    #[error("it is animated, and the model's vendor accepts only a GIF with one frame")]
    Animated,
    /// It has too many bytes.
    #[error("it has {bytes} bytes; the model's vendor accepts {max}; make a smaller copy of it")]
    Bytes {
        /// The size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// It is too wide or too high.
    #[error(
        "it has {width} × {height} pixels; the model's vendor accepts {max} on a side in this \
         conversation; make a smaller copy of it"
    )]
    Side {
        /// The width.
        width: u32,
        /// The height.
        height: u32,
        /// The limit.
        max: u32,
    },
    /// It has too many pixels.
    #[error(
        "it has {width} × {height} pixels; an image may have {} in all; make a smaller copy of it",
        ImageLimits::MAX_PIXELS
    )]
    Pixels {
        /// The width.
        width: u32,
        /// The height.
        height: u32,
    },
    /// The conversation has too many images.
    #[error("the conversation has {max} images, and the model's vendor accepts no more")]
    Count {
        /// The limit.
        max: usize,
    },
    /// The images of the conversation have too many bytes together.
    #[error("the images of the conversation have more than {max} bytes together, encoded")]
    TotalBytes {
        /// The limit.
        max: usize,
    },
}

/// The images so far.
struct CountedImages<'a> {
    support: &'a ImageSupport,
    count: usize,
    bytes: usize,
    /// Whether one of them must not be among many.
    has_large: bool,
}

impl CountedImages<'_> {
    fn judge(&mut self, block: &ContentBlock) -> Option<Result<ImageInfo, ImageRefusal>> {
        is_image(block).then(|| self.count(block.data()))
    }

    fn count(&mut self, data: &[u8]) -> Result<ImageInfo, ImageRefusal> {
        let ImageSupport { sees, limits, .. } = self.support;
        if *sees == Some(false) {
            return Err(ImageRefusal::Blind);
        }
        let info = ImageInfo::read(data)?;
        let ImageInfo { media_type, width, height, is_animated } = info;
        if !limits.media_types.contains(&media_type) {
            return Err(ImageRefusal::MediaType { media_type, accepted: limits.media_types });
        }
        if media_type == "image/gif" && is_animated && !limits.animated_gif {
            return Err(ImageRefusal::Animated);
        }
        if data.len() > limits.max_bytes {
            return Err(ImageRefusal::Bytes { bytes: data.len(), max: limits.max_bytes });
        }
        if u64::from(width) * u64::from(height) > ImageLimits::MAX_PIXELS {
            return Err(ImageRefusal::Pixels { width, height });
        }
        let side = width.max(height);
        let is_large = limits.large.is_some_and(|(_, most)| side > most);
        let max_side = match limits.large {
            Some((count, most)) if self.count >= count => most,
            _ => limits.max_side,
        };
        if side > max_side {
            return Err(ImageRefusal::Side { width, height, max: max_side });
        }
        let max = match limits.large {
            Some((count, _)) if self.has_large || is_large => count.min(limits.max_count),
            _ => limits.max_count,
        };
        if self.count >= max {
            return Err(ImageRefusal::Count { max });
        }
        let encoded = data.len().div_ceil(3).saturating_mul(4);
        if self.bytes.saturating_add(encoded) > limits.max_total_bytes {
            return Err(ImageRefusal::TotalBytes { max: limits.max_total_bytes });
        }
        self.count += 1;
        self.bytes += encoded;
        self.has_large |= is_large;
        Ok(info)
    }
}

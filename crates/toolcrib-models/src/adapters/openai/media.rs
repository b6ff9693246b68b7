//! Images, sounds and documents. Blocks that the vendor would refuse are omitted, since one such block
//! would invalidate every later request too; a text names them.

use base64::{display::Base64Display, prelude::BASE64_STANDARD};
use toolcrib_core::{ContentBlock, ImageLimits};

/// Maximum size of a sound or document: 16 MiB. A request may contain 50 MB of files, encoded.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The vendor's limits by its page "Images and vision": PNG, JPEG, WebP and GIF without animation; 20 MB
/// an image, 500 images and 50 MB in a request, of which 2 MB are for everything else. Other servers
/// with this protocol document none, and get the same.
pub(super) const LIMITS: ImageLimits = ImageLimits {
    animated_gif: false,
    max_bytes: 20_000_000,
    max_total_bytes: 48_000_000,
    max_count: 500,
    ..ImageLimits::NONE
};

/// A block that is not text.
pub(super) enum Media<'a> {
    /// An image, as a `data:` URL.
    Image { url: String },
    /// A sound.
    Audio { data: String, format: &'static str },
    /// A document, as a `data:` URL.
    Document { filename: &'a str, url: String },
}

/// The block in OpenAI's form, if it accepts it; an image with its media type.
pub(super) fn of<'a>(
    (block, image_type): (&'a ContentBlock, Option<&'static str>),
) -> Option<Media<'a>> {
    let data = block.data();
    let data_url = |media_type| {
        format!("data:{media_type};base64,{}", Base64Display::new(data, &BASE64_STANDARD))
    };
    match block {
        ContentBlock::Image { .. } => {
            image_type.map(|media_type| Media::Image { url: data_url(media_type) })
        }
        _ if data.len() > MAX_BYTES => None,
        ContentBlock::Audio { media_type, .. } => Some(Media::Audio {
            format: audio_format(media_type)?,
            data: Base64Display::new(data, &BASE64_STANDARD).to_string(),
        }),
        ContentBlock::Binary { uri, .. } if data.starts_with(b"%PDF-") => {
            let name = uri.rsplit('/').next().filter(|name| !name.is_empty());
            Some(Media::Document {
                filename: name.unwrap_or("document.pdf"),
                url: data_url("application/pdf"),
            })
        }
        _ => None,
    }
}

fn audio_format(media_type: &str) -> Option<&'static str> {
    match media_type.to_ascii_lowercase().as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

//! Images, sounds and documents in results. Blocks that the vendor would refuse are omitted, since
//! one such block would invalidate every later request too; the result's text still names them.

use base64::{display::Base64Display, prelude::BASE64_STANDARD};
use toolcrib_core::{__internal::image_type, ContentBlock};

/// Maximum size of a block: 16 MiB. A request may contain 50 MB of files, encoded.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// A block that is not text.
pub(super) enum Media<'a> {
    /// An image, as a `data:` URL.
    Image { url: String },
    /// A sound.
    Audio { data: String, format: &'static str },
    /// A document, as a `data:` URL.
    Document { filename: &'a str, url: String },
}

/// The blocks that OpenAI accepts.
pub(super) fn media(blocks: &[ContentBlock]) -> impl Iterator<Item = Media<'_>> {
    blocks.iter().filter_map(of)
}

fn of(block: &ContentBlock) -> Option<Media<'_>> {
    let data = block.data();
    if data.len() > MAX_BYTES {
        return None;
    }
    let data_url = |media_type| {
        format!("data:{media_type};base64,{}", Base64Display::new(data, &BASE64_STANDARD))
    };
    match block {
        ContentBlock::Image { .. } => {
            image_type(data).map(|media_type| Media::Image { url: data_url(media_type) })
        }
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

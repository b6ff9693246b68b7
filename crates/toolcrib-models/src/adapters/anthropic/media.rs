//! Images and documents. Blocks that the vendor would refuse are omitted, since one such block would
//! invalidate every later request too; a text names them.

use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer};
use toolcrib_core::{ContentBlock, ImageLimits, ImageSupport};

/// The largest document that is sent: half of the largest request, encoded.
const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024 / 4 * 3;

/// The vendor's limits by its page "Images and vision": JPEG, PNG, GIF and WebP; 8000 × 8000 pixels,
/// 2000 × 2000 in a request with more than 20 images; 100 images (600 with a larger context window).
/// An image has at most 5 MiB, encoded, by the error of the API. A request has at most 32 MB, of which
/// 2 MB are for everything else.
const LIMITS: ImageLimits = ImageLimits {
    max_bytes: 5 * 1024 * 1024 / 4 * 3,
    max_total_bytes: 30_000_000,
    max_side: 8_000,
    max_count: 100,
    large: Some((20, 2_000)),
    ..ImageLimits::NONE
};

/// The names before Claude 3, which does not see either.
const BLIND: [&str; 3] = ["claude-1", "claude-2", "claude-instant"];

/// The images that a model sees. All models since Claude 3 do.
pub(super) fn images(model: &str) -> ImageSupport {
    let is_blind = BLIND.iter().any(|name| model.starts_with(name));
    let sees = model.starts_with("claude-").then_some(!is_blind);
    ImageSupport { sees, in_results: true, limits: LIMITS }
}

/// A block that is not text.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Media<'a> {
    Image { source: Source<'a> },
    Document { source: Source<'a> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "base64")]
pub(super) struct Source<'a> {
    media_type: &'static str,
    #[serde(serialize_with = "encoded")]
    data: &'a [u8],
}

/// The block in the vendor's form; an image with its media type. The vendor does not accept audio and
/// unknown blocks; a text is in the result's text; a link would make the vendor fetch it.
pub(super) fn of<'a>(
    (block, image_type): (&'a ContentBlock, Option<&'static str>),
) -> Option<Media<'a>> {
    match (block, image_type) {
        (ContentBlock::Image { data, .. }, Some(media_type)) => {
            Some(Media::Image { source: Source { media_type, data } })
        }
        (ContentBlock::Binary { data, .. }, _)
            if data.len() <= MAX_DOCUMENT_BYTES && data.starts_with(b"%PDF-") =>
        {
            Some(Media::Document { source: Source { media_type: "application/pdf", data } })
        }
        _ => None,
    }
}

fn encoded<S: Serializer>(data: &&[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Base64Display::new(data, &STANDARD))
}

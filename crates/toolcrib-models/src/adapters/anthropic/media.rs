//! Images and documents in results. Blocks that the vendor would refuse are omitted, since one such
//! block would invalidate every later request too; the result's text still names them.

use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer};
use toolcrib_core::{__internal::image_type, ContentBlock};

/// The vendor's limit for an image: 5 MiB, encoded.
const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024 / 4 * 3;
/// The largest document that is sent: half of the largest request, encoded.
const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024 / 4 * 3;

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

/// The block in the vendor's form. The vendor does not accept audio and unknown blocks; a text is
/// in the result's text; a link would make the vendor fetch it.
pub(super) fn of(block: &ContentBlock) -> Option<Media<'_>> {
    match block {
        ContentBlock::Image { data, .. } if data.len() <= MAX_IMAGE_BYTES => {
            let media_type = image_type(data)?;
            Some(Media::Image { source: Source { media_type, data } })
        }
        ContentBlock::Binary { data, .. }
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

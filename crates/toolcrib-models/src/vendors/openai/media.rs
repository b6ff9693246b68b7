//! Images, sounds and documents in results.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Serialize;
use toolcrib_core::ContentBlock;

/// A part of a user's message.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text { text: String },
    ImageUrl { image_url: Image },
    InputAudio { input_audio: Audio },
    File { file: Document<'a> },
}

#[derive(Serialize)]
pub(super) struct Image {
    url: String,
}

#[derive(Serialize)]
pub(super) struct Audio {
    data: String,
    format: &'static str,
}

#[derive(Serialize)]
pub(super) struct Document<'a> {
    filename: &'a str,
    file_data: String,
}

impl Part<'_> {
    pub(super) fn text(text: String) -> Self {
        Self::Text { text }
    }
}

/// What of these blocks OpenAI takes. The result's text names all of them.
pub(super) fn parts(blocks: &[ContentBlock]) -> Vec<Part<'_>> {
    blocks.iter().filter_map(part).collect()
}

fn part(block: &ContentBlock) -> Option<Part<'_>> {
    let (media_type, uri) = match block {
        ContentBlock::Image { media_type, .. } | ContentBlock::Audio { media_type, .. } => {
            (&**media_type, "")
        }
        ContentBlock::Binary { media_type, uri, .. } => (media_type.as_deref()?, &**uri),
        _ => return None,
    };
    let data = BASE64_STANDARD.encode(block.data());
    match media_type.to_ascii_lowercase().as_str() {
        known @ ("image/png" | "image/jpeg" | "image/webp" | "image/gif") => {
            Some(Part::ImageUrl { image_url: Image { url: format!("data:{known};base64,{data}") } })
        }
        "audio/wav" | "audio/x-wav" | "audio/wave" => {
            Some(Part::InputAudio { input_audio: Audio { data, format: "wav" } })
        }
        "audio/mpeg" | "audio/mp3" => {
            Some(Part::InputAudio { input_audio: Audio { data, format: "mp3" } })
        }
        known @ "application/pdf" => Some(Part::File {
            file: Document {
                filename: uri
                    .rsplit('/')
                    .next()
                    .filter(|name| !name.is_empty())
                    .unwrap_or("document.pdf"),
                file_data: format!("data:{known};base64,{data}"),
            },
        }),
        _ => None,
    }
}

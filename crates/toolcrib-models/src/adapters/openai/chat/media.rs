//! The blocks of results, as parts of a user message.

use serde::Serialize;
use toolcrib_core::ContentBlock;

use super::super::media::{Media, media};

/// A part of a user message.
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

/// The parts for these blocks.
pub(super) fn parts(blocks: &[ContentBlock]) -> Vec<Part<'_>> {
    let part = |media| match media {
        Media::Image { url } => Part::ImageUrl { image_url: Image { url } },
        Media::Audio { data, format } => Part::InputAudio { input_audio: Audio { data, format } },
        Media::Document { filename, url } => {
            Part::File { file: Document { filename, file_data: url } }
        }
    };
    media(blocks).map(part).collect()
}

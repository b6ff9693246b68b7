//! Images of the user and blocks of results, as parts of a user message.

use serde::Serialize;

use super::super::media::Media;

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

impl<'a> From<Media<'a>> for Part<'a> {
    fn from(media: Media<'a>) -> Self {
        match media {
            Media::Image { url } => Self::ImageUrl { image_url: Image { url } },
            Media::Audio { data, format } => {
                Self::InputAudio { input_audio: Audio { data, format } }
            }
            Media::Document { filename, url } => {
                Self::File { file: Document { filename, file_data: url } }
            }
        }
    }
}

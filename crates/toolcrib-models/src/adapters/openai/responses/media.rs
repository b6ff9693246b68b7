//! The blocks of results beside text.

use std::borrow::Cow;

use serde::Serialize;
use toolcrib_core::ContentBlock;

use super::super::media::{Media, media};

/// A part of a result.
#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum Part<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image { image_url: String },
    #[serde(rename = "input_file")]
    File { filename: &'a str, file_data: String },
}

/// The parts for these blocks. A result cannot contain sounds.
pub(super) fn parts(blocks: &[ContentBlock]) -> impl Iterator<Item = Part<'_>> {
    media(blocks).filter_map(|media| match media {
        Media::Image { url } => Some(Part::Image { image_url: url }),
        Media::Document { filename, url } => Some(Part::File { filename, file_data: url }),
        Media::Audio { .. } => None,
    })
}

//! Images of the user and blocks of results beside text.

use std::borrow::Cow;

use serde::Serialize;
use toolcrib_core::ContentBlock;

use super::super::media::{self, Media};

/// A part of a user's message or of a result.
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

/// The block in the form of this API, which has no sounds in results.
pub(super) fn part<'a>(block: (&'a ContentBlock, Option<&'static str>)) -> Option<Part<'a>> {
    match media::of(block)? {
        Media::Image { url } => Some(Part::Image { image_url: url }),
        Media::Document { filename, url } => Some(Part::File { filename, file_data: url }),
        Media::Audio { .. } => None,
    }
}

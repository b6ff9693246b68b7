//! Images that a vendor refuses: the conversation without them, and what the user reads.

use toolcrib_core::{ContentBlock, ImageNotice, ImageSupport, Message, ModelErrorClass};

use crate::outcome::RunEnd;

/// Words that servers use for images in errors without a more precise class.
const WORDS: [&str; 4] = ["image", "vision", "multimodal", "mmproj"];

/// Whether a request may have failed because of an image in it. Vendors have no class for that, so
/// it is any refusal of the request's content; a failure of the server counts if it names images.
pub(super) fn may_be_refused(end: &RunEnd) -> bool {
    let Some(error) = &end.error else { return false };
    match error.class {
        Some(
            ModelErrorClass::BadRequest
            | ModelErrorClass::ContextOverflow
            | ModelErrorClass::ContentFilter,
        ) => true,
        Some(ModelErrorClass::Server | ModelErrorClass::Incomplete) => {
            let message = error.message.to_lowercase();
            WORDS.iter().any(|word| message.contains(word))
        }
        _ => false,
    }
}

/// The position after the last response of a model: the vendor accepted all images before it.
pub(super) fn accepted(messages: &[Message]) -> usize {
    let last = messages.iter().rposition(|message| matches!(message, Message::Assistant { .. }));
    last.map_or(0, |last| last + 1)
}

/// A conversation without images.
pub(super) struct WithoutImages {
    pub(super) messages: Vec<Message>,
    /// The positions of the changed messages.
    pub(super) positions: Vec<usize>,
    pub(super) notices: Vec<ImageNotice>,
}

impl WithoutImages {
    /// The conversation without the images that are sent in messages from a position on; `None` if
    /// there are none. A text replaces each of them.
    pub(super) fn of(messages: &[Message], from: usize, support: &ImageSupport) -> Option<Self> {
        let mut without =
            Self { messages: messages.to_vec(), positions: Vec::new(), notices: Vec::new() };
        for (position, message) in without.messages.iter_mut().enumerate().skip(from) {
            let (text, blocks, of) = match message {
                Message::User { text, blocks } => (text, blocks, String::new()),
                Message::Tool { name, text, blocks, .. } if support.in_results => {
                    (text, blocks, format!(" of `{name}`"))
                }
                _ => continue,
            };
            let is_image = |block: &&ContentBlock| matches!(block, ContentBlock::Image { .. });
            let images: Vec<_> = blocks.iter().filter(is_image).collect();
            if images.is_empty() {
                continue;
            }
            let mut left_out = text.to_string();
            for image in images {
                let image = image.reference();
                left_out += &format!("\n\n{image} is left out: the model's vendor refused it.");
                without.notices.push(ImageNotice {
                    image: format!("{image}{of}"),
                    is_sent: false,
                    reason: "the model's vendor refused the request with it and accepted the one \
                             without it, so it is left out of the conversation from now on"
                        .to_owned(),
                });
            }
            *text = left_out.into();
            *blocks = blocks.iter().filter(|block| !is_image(block)).cloned().collect();
            without.positions.push(position);
        }
        (!without.positions.is_empty()).then_some(without)
    }
}

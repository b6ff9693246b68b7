//! The images of a request that are sent, and the texts in place of those that are not.

use std::borrow::Cow;

use toolcrib_core::{ContentBlock, ImageSupport, JudgedImages, Message};

/// The images of the messages of a request. Empty if there are none.
pub(super) struct SentImages {
    /// Whether images in results of tools are sent.
    pub(super) in_results: bool,
    judged: JudgedImages,
    /// By the position of the message.
    notes: Vec<(usize, String)>,
}

impl SentImages {
    /// The images of the messages from a position on. Those before it decide on them, but are not judged
    /// if there are none.
    pub(super) fn of(support: &ImageSupport, messages: &[Message], from: usize) -> Self {
        let mut new = messages.iter().skip(from);
        let judged = match new.any(|message| !message.blocks().is_empty()) {
            true => support.judge(messages),
            false => JudgedImages::default(),
        };
        // Most conversations have none.
        let noted = if judged.is_empty() { &[] } else { messages };
        let notes = noted.iter().enumerate().filter_map(|(at, message)| {
            let note = note(message.blocks(), &judged, at)?;
            Some((at, note))
        });
        Self { in_results: support.in_results, notes: notes.collect(), judged }
    }

    /// The blocks that are sent with the message at a position, each image with its media type.
    pub(super) fn sent<'a>(
        &self,
        at: usize,
        blocks: &'a [ContentBlock],
    ) -> impl Iterator<Item = (&'a ContentBlock, Option<&'static str>)> {
        let judged = self.judged.of(at);
        blocks.iter().enumerate().filter_map(move |(position, block)| {
            match (block, judged.get(position)) {
                (ContentBlock::Image { .. }, Some(Some(Ok(info)))) => {
                    Some((block, Some(info.media_type)))
                }
                (ContentBlock::Image { .. }, _) => None,
                _ => Some((block, None)),
            }
        })
    }

    /// The text about the images of a message that are not sent, for the model.
    pub(super) fn note(&self, at: usize) -> Option<&str> {
        let found = self.notes.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        self.notes.get(found).map(|(_, note)| &**note)
    }

    /// The text of a message, with that about its images.
    pub(super) fn noted<'a>(&self, at: usize, text: &'a str) -> Cow<'a, str> {
        match self.note(at) {
            Some(note) if text.is_empty() => note.to_owned().into(),
            Some(note) => format!("{text}\n\n{note}").into(),
            None => text.into(),
        }
    }
}

fn note(blocks: &[ContentBlock], judged: &JudgedImages, at: usize) -> Option<String> {
    let judged = judged.of(at).iter();
    let images = blocks.iter().zip(judged).filter_map(|(block, judged)| Some((block, (*judged)?)));
    let refused = images.enumerate().filter_map(|(number, (block, judged))| {
        let refusal = judged.err()?;
        let reference = block.reference();
        Some(format!("Image {} of this message, {reference}, is not shown: {refusal}.", number + 1))
    });
    let notes: Vec<_> = refused.collect();
    (!notes.is_empty()).then(|| notes.join("\n"))
}

//! Makes results that somebody else may have written [harmless].

use std::borrow::Cow;

use serde_json::Value;
use toolcrib_core::{ContentBlock, harmless};

use super::budget::Cut;
use crate::json::map_texts;

/// How a call ended, cut and harmless to read.
pub(super) struct Clean(pub(super) Cut);

impl Clean {
    /// The text, unfenced.
    pub(super) fn value(&self) -> String {
        self.0.marked(&self.0.body)
    }
}

/// Only what will be fenced is sanitised: a tool's own text is its author's.
pub(super) fn sanitise(mut cut: Cut) -> Clean {
    if cut.fence.is_some() {
        // What stands below begins a line of its own, with words of ours: no token spans both.
        for text in [&mut cut.body, &mut cut.below] {
            if let Cow::Owned(clean) = harmless(text) {
                *text = clean;
            }
        }
        for block in &mut cut.blocks {
            *block = block.clone().map_texts(|text| harmless(text).into_owned());
        }
        cut.structured = cut.structured.take().map(|data| {
            let mut leaf = |leaf| match leaf {
                Value::String(text) => Value::String(owned(text)),
                other => other,
            };
            map_texts(data, &mut leaf, &mut owned)
        });
    }
    // Our marker comes last: one that was there before is somebody's forgery.
    if let Some((position, marker)) = cut.cut_block.take()
        && let Some(ContentBlock::Text { text, .. }) = cut.blocks.get_mut(position)
    {
        *text = format!("{text}\n{marker}").into();
    }
    Clean(cut)
}

fn owned(text: String) -> String {
    match harmless(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => clean,
    }
}

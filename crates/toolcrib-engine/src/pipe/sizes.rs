//! The size of a result's text after each stage that changes it, for `tool.end`.

use std::{
    borrow::Cow,
    hash::{BuildHasher as _, RandomState},
};

use toolcrib_core::{StageBytes, ToolOutput};

use super::{
    artifact::readable,
    call::{Batch, RawResult},
    cut::CutResult,
};

/// The sizes of one result. Without listeners nothing is measured.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    is_on: bool,
    produced: Option<u64>,
    /// The length and the hash: a stage may replace a text by one of the same length.
    last: (u64, u64),
    hasher: RandomState,
    stages: Vec<StageBytes>,
}

impl Sizes {
    pub(super) fn of(batch: &Batch<'_>) -> Self {
        Self { is_on: batch.events.has_listeners(), ..Self::default() }
    }

    /// Notes the text after a stage. The first one is the text before all stages.
    fn note<'t>(&mut self, stage: &'static str, text: impl FnOnce() -> Cow<'t, str>) {
        if !self.is_on {
            return;
        }
        let text = text();
        let bytes = text.len() as u64;
        let now = (bytes, self.hasher.hash_one(text));
        if self.produced.is_none() {
            self.produced = Some(bytes);
        } else if now != self.last {
            self.stages.push(StageBytes { stage, bytes });
        }
        self.last = now;
    }

    /// The output of a tool, before or after `reduce`.
    pub(super) fn output(&mut self, stage: &'static str, output: &ToolOutput) {
        self.note(stage, || readable(&output.value, &output.blocks));
    }

    /// An outcome before its text is cut.
    pub(super) fn outcome(&mut self, stage: &'static str, ended: &RawResult) {
        self.note(stage, || match &ended.outcome {
            Ok(output) => readable(&output.value, &output.blocks),
            Err(failure) => readable(&failure.message, failure.blocks()),
        });
    }

    /// An outcome whose text was cut.
    pub(super) fn cut(&mut self, stage: &'static str, cut: &CutResult) {
        self.note(stage, || Cow::Owned(cut.marked(&cut.read())));
    }

    /// The text that the model reads.
    pub(super) fn text(&mut self, stage: &'static str, text: &str) {
        self.note(stage, || Cow::Borrowed(text));
    }

    /// The size before all stages, and the stages that changed the text.
    pub(super) fn take(&mut self) -> (u64, Vec<StageBytes>) {
        (self.produced.unwrap_or_default(), std::mem::take(&mut self.stages))
    }
}

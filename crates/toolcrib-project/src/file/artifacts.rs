//! `[artifacts]`: storage for results that are too large for a model.

use std::{ops::RangeFrom, time::Duration};

use toolcrib_config::Table;
use toolcrib_tools::MAX_RESULT_CHARS;

/// The permitted storage limits, in bytes.
const BYTES: RangeFrom<u64> = 1..;

/// The minimum length of a useful answer.
const MIN_ANSWER_CHARS: usize = 500;

/// `[artifacts]`: its presence enables storage.
#[derive(Debug)]
pub(crate) struct ArtifactsSection {
    pub(crate) in_memory: bool,
    pub(crate) keep_for: Option<Duration>,
    pub(crate) max_turn_bytes: Option<u64>,
    pub(crate) max_session_bytes: Option<u64>,
    pub(crate) max_answer_chars: Option<usize>,
}

impl ArtifactsSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        let store = table.value("store").and_then(|store| {
            let store = store.word(&[("files", false), ("memory", true)])?;
            Some(store.value)
        });
        Self {
            in_memory: store.unwrap_or_default(),
            keep_for: table.age("keep_for"),
            max_turn_bytes: table.size("max_turn_bytes", BYTES),
            max_session_bytes: table.size("max_session_bytes", BYTES),
            max_answer_chars: table
                .integer("max_answer_chars", MIN_ANSWER_CHARS..=MAX_RESULT_CHARS),
        }
    }
}

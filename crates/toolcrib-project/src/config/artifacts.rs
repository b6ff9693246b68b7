//! `[artifacts]`: what becomes of results that are too large for a model.

use std::{ops::RangeFrom, time::Duration};

use toolcrib_config::Table;

use super::tool::MAX_CHARS;

/// How much may be kept.
const BYTES: RangeFrom<u64> = 1..;

/// The least of an answer that says something.
const MIN_ANSWER_CHARS: usize = 500;

/// `[artifacts]`: a project that has it keeps them.
#[derive(Debug)]
pub(crate) struct ArtifactsSection {
    pub(crate) in_memory: bool,
    pub(crate) keep_for: Option<Duration>,
    pub(crate) max_turn_bytes: Option<u64>,
    pub(crate) max_session_bytes: Option<u64>,
    pub(crate) max_answer_chars: Option<usize>,
}

impl ArtifactsSection {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let store = table.value("store").and_then(|store| {
            let store = store.word(&[("files", false), ("memory", true)])?;
            Some(store.value)
        });
        Self {
            in_memory: store.unwrap_or_default(),
            keep_for: table.age("keep_for"),
            max_turn_bytes: table.size("max_turn_bytes", BYTES),
            max_session_bytes: table.size("max_session_bytes", BYTES),
            max_answer_chars: table.integer("max_answer_chars", MIN_ANSWER_CHARS..=MAX_CHARS),
        }
    }
}

//! `[sessions]`: where runs are stored, and for how long.

use std::{ops::RangeFrom, time::Duration};

use toolcrib_config::Table;

/// The permitted total sizes, in bytes.
const BYTES: RangeFrom<u64> = 1..;

/// `[sessions]`.
#[derive(Debug, Default)]
pub(crate) struct SessionsSection {
    pub(crate) are_off: bool,
    pub(crate) keep_for: Option<Duration>,
    pub(crate) max_bytes: Option<u64>,
}

impl SessionsSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        let are_off = table.value("store").and_then(|store| {
            let store = store.word(&[("file", false), ("none", true)])?;
            Some(store.value)
        });
        Self {
            are_off: are_off.unwrap_or_default(),
            keep_for: table.age("keep_for"),
            max_bytes: table.size("max_bytes", BYTES),
        }
    }
}

//! `[approvals]`: how calls wait for approval.

use std::time::Duration;

use toolcrib_config::{Located, Table};

/// `[approvals]`.
#[derive(Debug, Default)]
pub(crate) struct ApprovalsSection {
    /// Whether the project is refused where approvals are advisory; with the place of the key.
    pub(crate) is_strict: Option<Located<bool>>,
    pub(crate) expire_after: Option<Duration>,
}

impl ApprovalsSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        let is_strict = table
            .value("mode")
            .and_then(|mode| mode.word(&[("advisory", false), ("strict", true)]));
        Self { is_strict, expire_after: table.age("expire_after") }
    }
}

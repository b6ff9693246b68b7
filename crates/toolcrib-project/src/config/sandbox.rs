//! `[sandbox]`: the sandbox of all programs that declare none.

use toolcrib_capabilities::process::SandboxTier;
use toolcrib_config::{Located, Table};
use toolcrib_tools::command::sandbox_tier;

/// The section.
#[derive(Debug, Default)]
pub(crate) struct SandboxDefaultSection {
    /// The tier of the project's programs, not of servers in files.
    pub(crate) tier: Option<Located<SandboxTier>>,
}

impl SandboxDefaultSection {
    pub(super) fn read(table: &Table<'_>) -> Self {
        Self { tier: table.value("tier").and_then(|value| sandbox_tier(&value)) }
    }
}

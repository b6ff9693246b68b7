//! `[sandbox]`: the sandbox of all programs that declare none.

use toolcrib_capabilities::process::SandboxTier;
use toolcrib_config::{Located, Table};
use toolcrib_tools::command::sandbox_tier;

/// The values of `contain_children`, and whether child processes may outlive a program.
const CONTAIN_CHILDREN: [(&str, bool); 2] = [("required", false), ("where_possible", true)];

/// The section.
#[derive(Debug, Default)]
pub(crate) struct SandboxDefaultSection {
    /// The tier of the project's programs, not of servers in files.
    pub(crate) tier: Option<Located<SandboxTier>>,
    /// Whether programs start where their child processes can outlive them; servers in files
    /// included.
    pub(crate) allow_stray_children: bool,
}

impl SandboxDefaultSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        let contain = table.value("contain_children");
        let contain = contain.and_then(|value| value.word(&CONTAIN_CHILDREN));
        Self {
            tier: table.value("tier").and_then(|value| sandbox_tier(&value)),
            allow_stray_children: contain.is_some_and(|allow| allow.value),
        }
    }
}

//! The sections that only set something: `[agent]`, `[limits]`, `[skills]`.

use std::{sync::Arc, time::Duration};

use toolcrib_config::{Located, Table};

/// The most iterations of one turn.
const MAX_ITERATIONS: u32 = 1000;

/// `[agent]`.
#[derive(Debug, Default)]
pub(crate) struct AgentSection {
    pub(crate) model: Option<Located<Arc<str>>>,
    pub(crate) system: Option<SystemText>,
    pub(crate) max_iterations: Option<u32>,
    pub(crate) turn_timeout: Option<Duration>,
}

/// Where the system text stands.
#[derive(Debug)]
pub(crate) enum SystemText {
    Here(Arc<str>),
    File(Located<Arc<str>>),
}

impl AgentSection {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let (here, file) = (table.text("system"), table.text("system_file"));
        if let (Some(_), Some(file)) = (&here, &file) {
            table.refuse_at(
                &file.at,
                "`system` and `system_file` both give the system text",
                "keep one of them",
            );
        }
        Self {
            model: table.text("model"),
            system: here
                .map(|text| SystemText::Here(text.value))
                .or_else(|| file.map(SystemText::File)),
            max_iterations: table.integer("max_iterations", 1..=MAX_ITERATIONS),
            turn_timeout: table.duration("turn_timeout"),
        }
    }
}

/// `[limits]`.
#[derive(Debug, Default)]
pub(crate) struct LimitsSection {
    pub(crate) batch_result_chars: Option<usize>,
    pub(crate) tool_timeout: Option<Duration>,
}

impl LimitsSection {
    pub(super) fn read(table: &Table<'_>) -> Self {
        Self {
            batch_result_chars: table.integer("batch_result_chars", 1..=super::tool::MAX_CHARS),
            tool_timeout: table.duration("tool_timeout"),
        }
    }
}

/// `[skills]`.
#[derive(Debug, Default)]
pub(crate) struct SkillsSection {
    pub(crate) folder: Option<Located<Arc<str>>>,
    pub(crate) focus: Option<bool>,
}

impl SkillsSection {
    pub(super) fn read(table: &Table<'_>) -> Self {
        Self { folder: table.text("folder"), focus: table.boolean("focus") }
    }
}

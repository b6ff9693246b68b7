//! The sections with settings: `[agent]`, `[limits]`, `[skills]`.

use std::{sync::Arc, time::Duration};

use toolcrib_agent::TurnLimits;
use toolcrib_config::{Diagnostic, Located, Problems, Spot, Table, suggest};
use toolcrib_engine::ToolsMode;

/// The limit of iterations of one turn.
const MAX_ITERATIONS: u32 = 1000;

/// `[agent]`.
#[derive(Debug, Default)]
pub(crate) struct AgentSection {
    pub(crate) id: Option<Arc<str>>,
    pub(crate) model: Option<Located<Arc<str>>>,
    /// The alternative models that rules may query, in order.
    pub(crate) fallback_models: Vec<Located<Arc<str>>>,
    pub(crate) system: Option<SystemText>,
    pub(crate) max_iterations: Option<u32>,
    pub(crate) turn_timeout: Option<Duration>,
}

/// The source of the system text.
#[derive(Debug)]
pub(crate) enum SystemText {
    Here(Arc<str>),
    File(Located<Arc<str>>),
}

impl SystemText {
    /// Reads `system` or `system_file`.
    pub(crate) fn read(table: &Table<'_>) -> Option<Self> {
        let (here, file) = (table.text("system"), table.text("system_file"));
        if let (Some(_), Some(file)) = (&here, &file) {
            table.refuse_at(
                &file.at,
                "`system` and `system_file` both give the system text",
                "keep one of them",
            );
        }
        here.map(|text| Self::Here(text.value)).or_else(|| file.map(Self::File))
    }
}

impl AgentSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        Self {
            id: table.text("id").map(|id| id.value),
            model: table.text("model"),
            fallback_models: table.texts("fallback_models"),
            system: SystemText::read(table),
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
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) batch_timeout: Option<Duration>,
    pub(crate) turn: TurnLimits,
    /// The position of `max_cost_usd`.
    pub(crate) cost_at: Option<Spot>,
}

impl LimitsSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        Self {
            batch_result_chars: table
                .integer("batch_result_chars", 1..=toolcrib_tools::MAX_RESULT_CHARS),
            tool_timeout: table.duration("tool_timeout"),
            idle_timeout: table.duration("idle_timeout"),
            batch_timeout: table.duration("batch_timeout"),
            turn: Self::turn(table),
            cost_at: table.value("max_cost_usd").map(|cost| cost.at()),
        }
    }

    /// The limits of a turn. The defaults are those of the agent.
    fn turn(table: &Table<'_>) -> TurnLimits {
        let default = TurnLimits::default();
        TurnLimits {
            max_calls: table.integer("max_calls", 1..=u32::MAX),
            max_calls_per_tool: table.integer("max_calls_per_tool", 1..=u32::MAX),
            max_identical_calls: table
                .integer("max_identical_calls", 1..=u32::MAX)
                .or(default.max_identical_calls),
            max_denials: table.integer("max_denials", 1..=u32::MAX).or(default.max_denials),
            max_tokens: table.integer("max_tokens", 1..=u64::MAX),
            max_cost_usd: table.number("max_cost_usd", 1e-6..),
        }
    }
}

/// `[skills]`.
#[derive(Debug, Default)]
pub(crate) struct SkillsSection {
    pub(crate) folder: Option<Located<Arc<str>>>,
    pub(crate) focus: Option<bool>,
    /// When tools of skills are offered, unless a skill overrides it.
    pub(crate) tools: Option<ToolsMode>,
    pub(crate) list_skills: Option<bool>,
    pub(crate) deactivate_skill: Option<bool>,
}

impl SkillsSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        Self {
            folder: table.text("folder"),
            focus: table.boolean("focus"),
            tools: table
                .text("tools")
                .and_then(|mode| tools_mode("tools", &mode, table.problems())),
            list_skills: table.boolean("list_skills"),
            deactivate_skill: table.boolean("deactivate_skill"),
        }
    }
}

/// When tools of skills are offered, from a key of the project or of a skill. Other values are
/// recorded.
pub(crate) fn tools_mode(
    key: &str,
    written: &Located<Arc<str>>,
    problems: &Problems,
) -> Option<ToolsMode> {
    let mode = ToolsMode::ALL.into_iter().find(|mode| *mode.as_str() == *written.value);
    if mode.is_none() {
        let known = ToolsMode::ALL.map(ToolsMode::as_str);
        let message =
            format!("`{key}` is one of {}, not `{}`", suggest::quoted(known), written.value);
        let near = suggest::nearest(&written.value, known);
        let help = near.map(|near| format!("did you mean `{near}`?"));
        problems.push(Diagnostic::error(&written.at, message).help(help));
    }
    mode
}

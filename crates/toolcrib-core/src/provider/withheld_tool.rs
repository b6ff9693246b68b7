use std::{fmt, sync::Arc};

use serde::Serialize;

/// A known tool that is not offered, with the reason; or an omitted source, which represents all of
/// its tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WithheldTool {
    /// The tool; for an omitted source, the pattern of its tools' names, such as `mcp__git__*`.
    pub name: Arc<str>,
    /// The tool's origin; for a source, its path.
    pub origin: Arc<str>,
    /// The first part that withholds it.
    pub by: WithheldBy,
    /// The rules and gates that withhold it; outside of events also every fact that must change
    /// before it is offered.
    pub reason: String,
}

/// The part that withholds a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WithheldBy {
    /// A gate in code, a provider that is scoped to a skill, or the tool's own source.
    Gate,
    /// The run's personality.
    Personality,
    /// A policy rule, or the default.
    Policy,
    /// No active skill lists it.
    Skill,
    /// Another tool with its name is offered.
    Collision,
    /// Its schema cannot be enforced.
    Schema,
    /// Its own check says that it is not available now.
    Availability,
    /// Its source could not be listed and was omitted.
    Discovery,
}

impl fmt::Display for WithheldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gate => "gate",
            Self::Personality => "personality",
            Self::Policy => "policy",
            Self::Skill => "skill",
            Self::Collision => "collision",
            Self::Schema => "schema",
            Self::Availability => "availability",
            Self::Discovery => "discovery",
        })
    }
}

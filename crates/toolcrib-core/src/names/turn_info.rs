//! The host's information on a turn, and the scopes of memories.

use std::sync::Arc;

/// The host's information on a turn, beside the [`Identity`](crate::Identity) that it acts for. Tools read
/// it from their [`ToolContext`](crate::ToolContext); no rule depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnInfo {
    /// The surface that the turn runs on, such as `cli`, `mcp` or `slack`. Default: unknown.
    pub platform: Option<Arc<str>>,
    /// The key of the session for people, such as `cli:my-repo`. Default: none.
    pub session_key: Option<Arc<str>>,
    /// The id of the agent, where several share a system. Default: none.
    pub agent_id: Option<Arc<str>>,
    /// The number of the turn in its session, from 1. Default: 1.
    pub turn: u32,
    /// The number of messages of the session when the turn began, the user's included. Default: 0.
    pub messages: usize,
}

impl Default for TurnInfo {
    fn default() -> Self {
        Self { platform: None, session_key: None, agent_id: None, turn: 1, messages: 0 }
    }
}

/// The sharing of a memory. A turn has one memory of each scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryScope {
    /// All turns. While a conversation is tainted, each write is approved.
    Global,
    /// The turns of one personality.
    Personality,
    /// The turns of one principal.
    Principal,
    /// The turns of one team. While a conversation is tainted, each write is approved.
    Team,
}

impl MemoryScope {
    /// The scopes, by their words in a project.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("global", Self::Global),
        ("personality", Self::Personality),
        ("principal", Self::Principal),
        ("team", Self::Team),
    ];

    /// Whether others than the principal and personality of a turn read what it writes.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Global | Self::Team)
    }
}

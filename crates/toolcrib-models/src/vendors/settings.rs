//! What a vendor's model is told beside the conversation.

/// How much a model is to think before it answers, where it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// A little.
    Low,
    /// As is usual.
    Medium,
    /// Much; slow and dear.
    High,
}

impl ReasoningEffort {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// What a vendor's model is told beside the conversation. What is not set is the vendor's to choose.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Settings {
    pub(super) max_output_tokens: Option<u32>,
    pub(super) temperature: Option<f64>,
    pub(super) reasoning: Option<ReasoningEffort>,
    /// Whether images and the like in results are sent; `None`: where the vendor takes them.
    pub(super) result_blocks: Option<bool>,
}

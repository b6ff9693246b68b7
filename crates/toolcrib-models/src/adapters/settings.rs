//! Settings of a vendor's model, beside the conversation.

/// How much a model thinks before it responds, if it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// A little.
    Low,
    /// The usual amount.
    Medium,
    /// Much; slow and expensive.
    High,
}

impl ReasoningEffort {
    /// The word in files and options.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Settings of a vendor's model, beside the conversation. Default: the vendor's own.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Settings {
    pub(super) max_output_tokens: Option<u32>,
    pub(super) temperature: Option<f64>,
    pub(super) reasoning: Option<ReasoningEffort>,
    /// Whether the model sees images; `None`: if its name says so.
    pub(super) images: Option<bool>,
    /// Whether images and similar blocks in results are sent; `None`: if the vendor accepts them.
    pub(super) result_blocks: Option<bool>,
    /// Whether the vendor loads found tools; `None`: if the model is known to.
    pub(super) tool_search: Option<bool>,
    /// Whether think tags are reasoning; `None`: except at the vendors that separate it.
    pub(super) think_tags: Option<bool>,
    /// The input tokens above which the vendor makes room.
    pub(super) clear_above: Option<u32>,
}

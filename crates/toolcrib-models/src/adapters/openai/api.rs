//! OpenAI's APIs.

/// One of OpenAI's APIs.
///
/// Default, unless [set](crate::VendorModelBuilder::api): [`Responses`](Self::Responses) if the
/// base URL is OpenAI's own, otherwise [`ChatCompletions`](Self::ChatCompletions).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpenAiApi {
    /// Chat Completions, which many servers support. OpenAI's newest models accept no tools here,
    /// or only without reasoning.
    ChatCompletions,
    /// Responses: results of tools may contain images, and a model's thinking goes back to it with
    /// the conversation, encrypted. The request disables storage at the vendor.
    Responses,
}

impl OpenAiApi {
    /// Both APIs of the vendor.
    pub const ALL: [Self; 2] = [Self::ChatCompletions, Self::Responses];

    /// The word in a project file: `chat_completions`, `responses`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat_completions",
            Self::Responses => "responses",
        }
    }
}

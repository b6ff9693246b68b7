//! Which API a model is spoken to by.

/// Which of OpenAI's APIs a model is spoken to by.
///
/// Unless it is [set](crate::VendorModelBuilder::api), it is [`Responses`](Self::Responses) where the
/// base URL is OpenAI's own, and [`ChatCompletions`](Self::ChatCompletions) everywhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpenAiApi {
    /// Chat Completions, which many servers speak. OpenAI's newest models take no tools here, or
    /// only if they do not reason.
    ChatCompletions,
    /// Responses: results of tools may hold images, and what a model thought goes back to it with
    /// the conversation, encrypted. The vendor is told to store nothing.
    Responses,
}

impl OpenAiApi {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::ChatCompletions, Self::Responses];

    /// The word for it, as in a project file: `chat_completions`, `responses`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat_completions",
            Self::Responses => "responses",
        }
    }
}

//! The measured wire formats.

use toolcrib_core::Secret;
use toolcrib_models::{OpenAiApi, Vendor, VendorModel, VendorModelBuilder};

use super::server::Server;

/// A wire format: OpenAI has two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Messages.
    Anthropic,
    /// Chat Completions, as supported by your own servers.
    OpenAiChat,
    /// Responses.
    OpenAiResponses,
    /// `generateContent`.
    Gemini,
    /// `/api/chat`.
    Ollama,
}

impl Wire {
    /// All formats.
    pub const ALL: [Self; 5] =
        [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses, Self::Gemini, Self::Ollama];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai, chat",
            Self::OpenAiResponses => "openai, responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// A model with this format, at a server.
    pub fn model(self, server: &Server) -> VendorModelBuilder {
        let (vendor, path, model) = match self {
            Self::Anthropic => (Vendor::Anthropic, "", "claude-sonnet-4-5"),
            Self::OpenAiChat => (Vendor::OpenAi, "/v1", "qwen3"),
            Self::OpenAiResponses => (Vendor::OpenAi, "/v1", "gpt-5.1"),
            Self::Gemini => (Vendor::Gemini, "", "gemini-2.5-flash"),
            Self::Ollama => (Vendor::Ollama, "", "qwen3"),
        };
        let builder = VendorModel::builder(vendor, model)
            .base_url(format!("http://{}{path}", server.address()))
            .key(Secret::new("test-key"));
        match self {
            Self::OpenAiChat => builder.api(OpenAiApi::ChatCompletions),
            Self::OpenAiResponses => builder.api(OpenAiApi::Responses),
            _ => builder,
        }
    }
}

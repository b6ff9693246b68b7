//! The compared APIs. OpenAI has two.

use std::fmt;

use toolcrib_models::{OpenAiApi, Vendor, VendorModelBuilder};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    OpenAi,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
}

impl Api {
    /// The name of its streams' folder and its SDK's script.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    pub(crate) fn vendor(self) -> Vendor {
        match self {
            Self::OpenAi | Self::Responses => Vendor::OpenAi,
            Self::Anthropic => Vendor::Anthropic,
            Self::Gemini => Vendor::Gemini,
            Self::Ollama => Vendor::Ollama,
        }
    }

    /// A model with this API.
    pub(crate) fn of(self, model: VendorModelBuilder) -> VendorModelBuilder {
        match self {
            Self::Responses => model.api(OpenAiApi::Responses),
            _ => model,
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

//! Which vendors there are.

use std::{fmt, str::FromStr};

use super::{
    anthropic::Anthropic,
    gemini::Gemini,
    ollama::Ollama,
    openai::{ChatCompletions, OpenAiApi, Responses},
    protocol::Protocol,
};

/// Whose API a model is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vendor {
    /// OpenAI's Responses, and the Chat Completions of every server that speaks them; see
    /// [`OpenAiApi`].
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// Ollama's own API.
    Ollama,
}

impl Vendor {
    /// All of them, in the order in which a default is looked for.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::Gemini, Self::Ollama];

    /// The name, as it stands before the colon in `openai:gpt-5`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Where its API is, unless a model says otherwise.
    pub fn base_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// The environment variables that its key is looked for in, the first that is set.
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
            Self::Ollama => &["OLLAMA_API_KEY"],
        }
    }

    /// The environment variable that says where its API is, as in the vendor's own SDK.
    pub fn base_url_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "OPENAI_BASE_URL",
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::Gemini => "GOOGLE_GEMINI_BASE_URL",
            Self::Ollama => "OLLAMA_HOST",
        }
    }

    /// The model that is taken where only the vendor is known. Ollama has whichever were pulled.
    pub fn default_model(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("gpt-6.2-sol"),
            Self::Anthropic => Some("claude-sonnet-5-5"),
            Self::Gemini => Some("gemini-3.8-flash"),
            Self::Ollama => None,
        }
    }

    /// The protocol that it speaks; OpenAI has one for each API.
    pub(super) fn protocol(self, api: OpenAiApi) -> &'static dyn Protocol {
        match (self, api) {
            (Self::OpenAi, OpenAiApi::ChatCompletions) => &ChatCompletions,
            (Self::OpenAi, OpenAiApi::Responses) => &Responses,
            (Self::Anthropic, _) => &Anthropic,
            (Self::Gemini, _) => &Gemini,
            (Self::Ollama, _) => &Ollama,
        }
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no vendor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no vendor `{name}`; there are: {}", all())]
pub struct UnknownVendor {
    /// The word.
    pub name: String,
}

/// All vendors' names, for a message.
fn all() -> String {
    Vendor::ALL.map(Vendor::as_str).join(", ")
}

impl FromStr for Vendor {
    type Err = UnknownVendor;

    fn from_str(name: &str) -> Result<Self, UnknownVendor> {
        Self::ALL
            .into_iter()
            .find(|vendor| vendor.as_str() == name)
            .ok_or_else(|| UnknownVendor { name: shortened(name) })
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A vendor and one of its models: `openai:gpt-6.2-sol`, `ollama:qwen3:8b`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    /// Whose it is.
    pub vendor: Vendor,
    /// What the vendor calls it.
    pub model: String,
}

/// A text that names no model of a vendor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidModelName {
    /// It does not begin with a vendor.
    #[error("`{name}` names no model; write VENDOR:MODEL, where VENDOR is one of: {}", all())]
    Vendor {
        /// The text.
        name: String,
    },
    /// It names a vendor that has no default model, and nothing more.
    #[error("no model is named; write `{vendor}:MODEL`")]
    NoModel {
        /// The vendor.
        vendor: Vendor,
    },
}

impl FromStr for ModelName {
    type Err = InvalidModelName;

    /// Reads `VENDOR:MODEL`; `VENDOR` alone is its [default model](Vendor::default_model), if it has
    /// one.
    fn from_str(text: &str) -> Result<Self, InvalidModelName> {
        let (vendor, model) = text.split_once(':').unwrap_or((text, ""));
        let unknown = |_| InvalidModelName::Vendor { name: shortened(text) };
        let vendor: Vendor = vendor.parse().map_err(unknown)?;
        let model = Some(model).filter(|model| !model.is_empty()).or(vendor.default_model());
        let model = model.ok_or(InvalidModelName::NoModel { vendor })?;
        Ok(Self { vendor, model: model.to_owned() })
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.vendor, self.model)
    }
}

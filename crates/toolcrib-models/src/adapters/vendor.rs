//! The vendors.

use std::{fmt, str::FromStr};

use super::{
    anthropic::Anthropic,
    gemini::Gemini,
    ollama::Ollama,
    openai::{ChatCompletions, OpenAiApi, Responses},
    protocol::Protocol,
};

/// The vendor of a model's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vendor {
    /// OpenAI's Responses, and the Chat Completions of every compatible server; see [`OpenAiApi`].
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// Ollama's own API.
    Ollama,
}

impl Vendor {
    /// All vendors, in the order of the search for a default.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::Gemini, Self::Ollama];

    /// The name, as before the colon in `openai:gpt-5`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// The default base URL of its API.
    pub fn base_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// The environment variables for its key, of which the first that is set is used.
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
            Self::Ollama => &["OLLAMA_API_KEY"],
        }
    }

    /// The environment variable for its base URL, as in the vendor's own SDK.
    pub fn base_url_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "OPENAI_BASE_URL",
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::Gemini => "GOOGLE_GEMINI_BASE_URL",
            Self::Ollama => "OLLAMA_HOST",
        }
    }

    /// Whether its API requires a key. A vendor without one is configured by its base URL.
    pub fn needs_key(self) -> bool {
        self != Self::Ollama
    }

    /// Whether its own server never writes reasoning into the text of an answer. Ollama serves models
    /// of many authors, some of which do.
    pub(super) fn separates_reasoning(self) -> bool {
        self != Self::Ollama
    }

    /// Whether its variable for the base URL may contain an address without scheme, as its server
    /// accepts it.
    pub(super) fn accepts_bare_address(self) -> bool {
        self == Self::Ollama
    }

    /// The default model if only the vendor is given. Ollama has none: its models are those that
    /// were pulled.
    pub fn default_model(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("gpt-6.2-sol"),
            Self::Anthropic => Some("claude-sonnet-5-5"),
            Self::Gemini => Some("gemini-3.8-flash"),
            Self::Ollama => None,
        }
    }

    /// The vendor whose models have names like this one, as far as its names are recognizable:
    /// `gpt-5` is one of OpenAI's. For suggestions only; Ollama's models have any name.
    pub fn of_model(name: &str) -> Option<Self> {
        let families = [
            (Self::OpenAi, ["gpt-", "o1", "o3", "o4", "chatgpt-", "codex-"].as_slice()),
            (Self::Anthropic, &["claude-"]),
            (Self::Gemini, &["gemini-", "gemma-"]),
        ];
        let is_of = |(_, prefixes): &(Self, &[&str])| {
            prefixes.iter().any(|prefix| name.to_ascii_lowercase().starts_with(prefix))
        };
        families.into_iter().find(is_of).map(|(vendor, _)| vendor)
    }

    /// Its protocol; OpenAI has one for each API.
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

/// A word that is not a vendor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown vendor `{name}`; there are: {}", all())]
pub struct UnknownVendorError {
    /// The word.
    pub name: String,
}

/// The names of all vendors, for a message.
fn all() -> String {
    Vendor::ALL.map(Vendor::as_str).join(", ")
}

impl FromStr for Vendor {
    type Err = UnknownVendorError;

    fn from_str(name: &str) -> Result<Self, UnknownVendorError> {
        Self::ALL
            .into_iter()
            .find(|vendor| vendor.as_str() == name)
            .ok_or_else(|| UnknownVendorError { name: shortened(name) })
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A vendor and one of its models: `openai:gpt-6.2-sol`, `ollama:qwen3:8b`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    /// The vendor.
    pub vendor: Vendor,
    /// The vendor's name of the model.
    pub model: String,
}

/// A text that is not the name of a vendor's model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidModelNameError {
    /// It does not begin with a vendor.
    #[error("`{name}` is not a model name; write VENDOR:MODEL, where VENDOR is one of: {}", all())]
    Vendor {
        /// The text.
        name: String,
    },
    /// It is only a vendor, which has no default model.
    #[error("no model is named; write `{vendor}:MODEL`")]
    NoModel {
        /// The vendor.
        vendor: Vendor,
    },
}

impl FromStr for ModelName {
    type Err = InvalidModelNameError;

    /// Parses `VENDOR:MODEL`; `VENDOR` alone is its [default model](Vendor::default_model), if it
    /// has one.
    fn from_str(text: &str) -> Result<Self, InvalidModelNameError> {
        let (vendor, model) = text.split_once(':').unwrap_or((text, ""));
        let unknown = |_| InvalidModelNameError::Vendor { name: shortened(text) };
        let vendor: Vendor = vendor.parse().map_err(unknown)?;
        let model = Some(model).filter(|model| !model.is_empty()).or(vendor.default_model());
        let model = model.ok_or(InvalidModelNameError::NoModel { vendor })?;
        Ok(Self { vendor, model: model.to_owned() })
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.vendor, self.model)
    }
}

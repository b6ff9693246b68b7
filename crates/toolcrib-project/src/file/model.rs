//! `[model.NAME]`: a vendor's model under a project name.

use std::{sync::Arc, time::Duration};

use toolcrib_config::{Diagnostic, Located, Table, Value, suggest};
use toolcrib_models::{
    CLEAR_TOKENS, OUTPUT_TOKENS, OpenAiApi, ReasoningEffort, TEMPERATURES, Vendor,
};

/// A declared model.
#[derive(Debug)]
pub(crate) struct ModelSection {
    pub(crate) name: Located<Arc<str>>,
    /// `None` if invalid, which is recorded; the same applies below.
    pub(crate) vendor: Option<Vendor>,
    /// The vendor's name for it; the vendor's default model if absent.
    pub(crate) model: Option<Located<Arc<str>>>,
    /// Which of OpenAI's APIs is used.
    pub(crate) api: Option<Located<OpenAiApi>>,
    pub(crate) base_url: Option<Located<Arc<str>>>,
    pub(crate) key: KeySource,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) temperature: Option<f64>,
    pub(crate) reasoning: Option<ReasoningEffort>,
    pub(crate) images: Option<bool>,
    pub(crate) result_blocks: Option<bool>,
    pub(crate) tool_search: Option<bool>,
    pub(crate) think_tags: Option<bool>,
    pub(crate) clear_above: Option<u32>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
}

/// The source of a model's key.
#[derive(Debug)]
pub(crate) enum KeySource {
    /// The vendor's environment variable.
    Environment,
    /// A secret of this name.
    Secret(Located<Arc<str>>),
    /// Invalid, which is recorded.
    Unusable,
}

impl ModelSection {
    /// The secret that contains the key.
    pub(crate) fn secret(&self) -> Option<&Located<Arc<str>>> {
        match &self.key {
            KeySource::Secret(name) => Some(name),
            KeySource::Environment | KeySource::Unusable => None,
        }
    }

    pub(crate) fn read_all(file: &Table<'_>) -> Vec<Self> {
        let Some(models) = file.value("model").and_then(|value| value.entries("`[model]`")) else {
            return Vec::new();
        };
        models.rest().filter_map(|(name, value)| Self::read(name, &value)).collect()
    }

    fn read(name: Located<Arc<str>>, value: &Value<'_>) -> Option<Self> {
        if !value.is_table() {
            let help = "the model to use is named under [agent], model = \"…\"; declare your own \
                model as `[model.NAME]`, with `vendor` and `model` below it";
            value.refuse(format!("`{}` is not a model", name.value), help);
            return None;
        }
        let is_taken = &*name.value == "script" || name.value.parse::<Vendor>().is_ok();
        if is_taken || name.value.contains(':') || name.value.trim().is_empty() {
            let message =
                format!("{} is not a valid model name here", suggest::quoted([&*name.value]));
            let help = "choose a name without a colon; openai, anthropic, gemini, ollama and \
                script are reserved";
            value.problems().push(Diagnostic::error(&name.at, message).help(help));
        }
        let what = format!("`[model.{}]`", name.value);
        value.table(&what, |table| Self {
            vendor: table
                .required("vendor", "\"openai\"")
                .and_then(|value| value.word(&Vendor::ALL.map(|vendor| (vendor.as_str(), vendor))))
                .map(|vendor| vendor.value),
            model: table.text("model"),
            api: table
                .value("api")
                .and_then(|value| value.word(&OpenAiApi::ALL.map(|api| (api.as_str(), api)))),
            base_url: table.text("base_url"),
            key: table.value("key").map_or(KeySource::Environment, |value| {
                super::secrets::secret_reference(&value, "key")
                    .map_or(KeySource::Unusable, KeySource::Secret)
            }),
            max_output_tokens: table.integer("max_output_tokens", OUTPUT_TOKENS),
            temperature: table.number("temperature", TEMPERATURES),
            reasoning: table
                .value("reasoning")
                .and_then(|value| {
                    use ReasoningEffort::{High, Low, Medium};
                    value.word(&[Low, Medium, High].map(|effort| (effort.as_str(), effort)))
                })
                .map(|effort| effort.value),
            images: table.boolean("images"),
            result_blocks: table.boolean("result_blocks"),
            tool_search: table.boolean("tool_search"),
            think_tags: table.boolean("think_tags"),
            clear_above: table.integer("clear_above", CLEAR_TOKENS),
            idle_timeout: table.duration("idle_timeout"),
            timeout: table.duration("timeout"),
            name,
        })
    }
}

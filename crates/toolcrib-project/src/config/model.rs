//! `[model.NAME]`: a model behind a vendor's API, under a name of the project's own.

use std::{sync::Arc, time::Duration};

use toolcrib_config::{Diagnostic, Located, Table, Value, suggest};
use toolcrib_models::{OUTPUT_TOKENS, OpenAiApi, ReasoningEffort, TEMPERATURES, Vendor};

/// A declared model.
#[derive(Debug)]
pub(crate) struct ModelSection {
    pub(crate) name: Located<Arc<str>>,
    /// `None` when it is of no use, which is recorded; likewise below.
    pub(crate) vendor: Option<Vendor>,
    /// What the vendor calls it; its default model when absent.
    pub(crate) model: Option<Located<Arc<str>>>,
    /// By which of OpenAI's APIs it is spoken to.
    pub(crate) api: Option<Located<OpenAiApi>>,
    pub(crate) base_url: Option<Located<Arc<str>>>,
    pub(crate) key: KeySource,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) temperature: Option<f64>,
    pub(crate) reasoning: Option<ReasoningEffort>,
    pub(crate) result_blocks: Option<bool>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
}

/// Where a model's key comes from.
#[derive(Debug)]
pub(crate) enum KeySource {
    /// The vendor's variable of the environment.
    Environment,
    /// A secret of this name.
    Secret(Located<Arc<str>>),
    /// What stands there is of no use, which is recorded.
    Unusable,
}

impl ModelSection {
    /// The secret that holds the key.
    pub(crate) fn secret(&self) -> Option<&Located<Arc<str>>> {
        match &self.key {
            KeySource::Secret(name) => Some(name),
            KeySource::Environment | KeySource::Unusable => None,
        }
    }

    pub(super) fn read_all(file: &Table<'_>) -> Vec<Self> {
        let Some(models) = file.value("model").and_then(|value| value.entries("`[model]`")) else {
            return Vec::new();
        };
        models.rest().filter_map(|(name, value)| Self::read(name, &value)).collect()
    }

    fn read(name: Located<Arc<str>>, value: &Value<'_>) -> Option<Self> {
        if !value.is_table() {
            let help = "the model to use is named under [agent], model = \"…\"; one of your own \
                        is written as `[model.NAME]`, with `vendor` and `model` below it";
            value.refuse(format!("`{}` is not a model", name.value), help);
            return None;
        }
        let is_taken = &*name.value == "script" || name.value.parse::<Vendor>().is_ok();
        if is_taken || name.value.contains(':') || name.value.trim().is_empty() {
            let message =
                format!("{} cannot be the name of a model here", suggest::quoted([&*name.value]));
            let help = "choose another, without a colon; openai, anthropic, gemini, ollama and \
                        script have a meaning already";
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
                super::secret_reference(&value, "key")
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
            result_blocks: table.boolean("result_blocks"),
            idle_timeout: table.duration("idle_timeout"),
            timeout: table.duration("timeout"),
            name,
        })
    }
}

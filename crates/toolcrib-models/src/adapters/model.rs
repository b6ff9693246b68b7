//! A model of a vendor's API.

use std::{ops::RangeInclusive, sync::OnceLock, time::Duration};

use toolcrib_capabilities::http::HttpClient;
use toolcrib_core::{Digest, Secret};

use super::{
    base_url::{BaseUrl, InvalidBaseUrlError},
    conversation::Conversations,
    menu_cache::MenuCache,
    openai::OpenAiApi,
    protocol::Protocol,
    settings::{ReasoningEffort, Settings},
    vendor::{ModelName, Vendor},
};

/// Default time without data after which a request fails. Models that reason may be silent for
/// minutes.
pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Default time limit of a request.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// Valid limits for the tokens of a response. Each model has a separate limit; these bounds only
/// catch mistakes.
pub const OUTPUT_TOKENS: RangeInclusive<u32> = 1..=10_000_000;

/// Valid values of [`clear_above`](VendorModelBuilder::clear_above), in tokens: OpenAI's minimum, and
/// a bound that catches mistakes.
pub const CLEAR_TOKENS: RangeInclusive<u32> = 1_000..=10_000_000;

/// The valid temperatures of a request. Some vendors' end at 1.
pub const TEMPERATURES: RangeInclusive<f64> = 0.0..=2.0;

/// The host of OpenAI's own API; subdomains are for data that must not leave a region.
const OPENAI_HOST: &str = "api.openai.com";

/// A model of a vendor's API, or of another server with the same protocol.
///
/// It sends one request per call and streams the response; it never retries, since a retry may use
/// another vendor. If a response breaks off, its text so far has been passed on, and the error has
/// the class [`Incomplete`](toolcrib_core::ModelErrorClass::Incomplete).
///
/// Redirects are refused. The key is sent only to the base URL's host, and is in no error. Requires
/// a tokio runtime with I/O and time.
///
/// ```no_run
/// use toolcrib_core::Secret;
/// use toolcrib_models::{Vendor, VendorModel};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Like the vendor's SDKs: the key comes from the environment.
/// let claude = VendorModel::from_env("anthropic:claude-sonnet-5-5")?;
///
/// // Your own server with OpenAI's protocol.
/// let local = VendorModel::builder(Vendor::OpenAi, "qwen3")
///     .base_url("http://127.0.0.1:8080/v1")
///     .temperature(0.0)
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub struct VendorModel {
    pub(super) name: String,
    pub(super) vendor: Vendor,
    pub(super) protocol: &'static dyn Protocol,
    pub(super) model: String,
    pub(super) base_url: BaseUrl,
    pub(super) key: Option<Secret>,
    pub(super) no_key: Option<String>,
    pub(super) settings: Settings,
    /// Whether its vendor loads found tools.
    pub(super) loads_tools: bool,
    /// Whether think tags in its text are reasoning.
    pub(super) think_tags: bool,
    pub(super) idle_timeout: Duration,
    pub(super) timeout: Duration,
    pub(super) client: HttpClient,
    pub(super) menus: MenuCache,
    pub(super) conversations: Conversations,
    /// The form of its requests, once it is needed.
    pub(super) form: OnceLock<Digest>,
}

impl VendorModel {
    /// Begins a model with the vendor's name for it.
    pub fn builder(vendor: Vendor, model: impl Into<String>) -> VendorModelBuilder {
        VendorModelBuilder {
            name: ModelName { vendor, model: model.into() },
            base_url: None,
            api: None,
            key: None,
            no_key: None,
            settings: Settings::default(),
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            timeout: DEFAULT_TIMEOUT,
            client: None,
        }
    }

    /// The vendor of its API.
    pub fn vendor(&self) -> Vendor {
        self.vendor
    }

    /// The vendor's name for it.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The base URL of its API.
    pub fn base_url(&self) -> &str {
        self.base_url.as_str()
    }

    /// Whether its API is the vendor's own, not another server with the same protocol.
    pub fn is_at_vendor(&self) -> bool {
        self.base_url.as_str().trim_end_matches('/') == self.vendor.base_url()
    }

    /// Whether it has a key.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Why it lacks a required key; such a model exists, but all of its requests fail.
    pub fn no_key(&self) -> Option<&str> {
        self.no_key.as_deref()
    }
}

toolcrib_core::__internal::debug_fields!(
    VendorModel,
    model,
    name = model.name,
    base_url = model.base_url.as_str(),
    has_key = model.has_key(),
    ..
);

/// Builder of a [`VendorModel`], with its key and settings.
#[derive(Clone)]
#[must_use = "nothing is checked until `build`"]
pub struct VendorModelBuilder {
    name: ModelName,
    base_url: Option<String>,
    api: Option<OpenAiApi>,
    key: Option<Secret>,
    no_key: Option<String>,
    settings: Settings,
    idle_timeout: Duration,
    timeout: Duration,
    client: Option<HttpClient>,
}

/// A model that cannot be built with these settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidVendorModelError {
    /// It has no name.
    #[error("no model is named; write `{vendor}:MODEL`")]
    NoModel {
        /// Its vendor.
        vendor: Vendor,
    },
    /// Its name is not valid in a request.
    #[error(
        "`{model}` is not a valid model name: it contains whitespace, control characters or path segments"
    )]
    ModelName {
        /// The name, in printable form.
        model: String,
    },
    /// Its base URL is not valid.
    #[error(transparent)]
    BaseUrl(#[from] InvalidBaseUrlError),
    /// An API is set for a vendor with a single one.
    #[error("{vendor} has one API, and `{}` is one of OpenAI's; set none", .api.as_str())]
    Api {
        /// The vendor.
        vendor: Vendor,
        /// The API that was set.
        api: OpenAiApi,
    },
    /// A setting is out of range.
    #[error("`{setting}` must be {expected}, and is {found}")]
    Setting {
        /// Its name in the builder and in a project file.
        setting: &'static str,
        /// The valid values.
        expected: String,
        /// The value.
        found: String,
    },
    /// The key is not valid in a header.
    #[error("the key cannot be sent: it contains whitespace or non-ASCII characters")]
    Key,
}

impl VendorModelBuilder {
    /// The vendor of its API.
    pub fn vendor(&self) -> Vendor {
        self.name.vendor
    }

    pub(super) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Whether a [base URL](Self::base_url) is set.
    pub fn has_base_url(&self) -> bool {
        self.base_url.is_some()
    }

    /// Sets the base URL. Default: the [vendor's](Vendor::base_url). As in the vendor's own SDK, it
    /// ends before the part that all its APIs have in common (`/v1` belongs to it with OpenAI and
    /// not with Anthropic). `http` with a key is only valid for this machine.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets which of OpenAI's APIs is used; only for [`Vendor::OpenAi`]. Default: Responses if the
    /// base URL is OpenAI's own, otherwise Chat Completions.
    pub fn api(mut self, api: OpenAiApi) -> Self {
        self.api = Some(api);
        self
    }

    /// Sets the key of the API. Without one none is sent, which your own servers often accept.
    pub fn key(mut self, key: Secret) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the reason why a required key is missing. The model can be built all the same, so that
    /// everything else can be inspected; every request fails with that text before anything is
    /// sent.
    pub fn without_key(mut self, reason: impl Into<String>) -> Self {
        self.no_key = Some(reason.into());
        self
    }

    /// Sets the maximum number of tokens of a response, reasoning included, within
    /// [`OUTPUT_TOKENS`]. Default: the vendor's limit; 8,192 for Anthropic, which has none.
    pub fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.settings.max_output_tokens = Some(tokens);
        self
    }

    /// Sets the temperature, within [`TEMPERATURES`]. Some models accept none.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.settings.temperature = Some(temperature);
        self
    }

    /// Sets how much the model thinks before it responds. Models that cannot think refuse it.
    pub fn reasoning(mut self, effort: ReasoningEffort) -> Self {
        self.settings.reasoning = Some(effort);
        self
    }

    /// Sets whether the model sees images. Default: known from the name of a model of OpenAI, Anthropic
    /// or Gemini; for any other name not known, and then they are sent. See
    /// [`ImageSupport`](toolcrib_core::ImageSupport).
    pub fn images(mut self, sees: bool) -> Self {
        self.settings.images = Some(sees);
        self
    }

    /// Sets whether images and similar blocks in results of tools are sent, beside the text that
    /// names them. Default: sent if the vendor's API accepts them; not every one of its models
    /// does.
    pub fn result_blocks(mut self, send: bool) -> Self {
        self.settings.result_blocks = Some(send);
        self
    }

    /// Sets whether deferred tools that a search has found are loaded by the vendor's own tool
    /// search (Anthropic's `tool_reference`, the `tool_search` of OpenAI's Responses), instead of
    /// called with `call_tool`. Default: if the base URL is the vendor's own and the model is known
    /// to have it. Other APIs accept only false.
    pub fn tool_search(mut self, use_it: bool) -> Self {
        self.settings.tool_search = Some(use_it);
        self
    }

    /// Sets the number of input tokens above which the vendor makes room by itself: Anthropic leaves
    /// out the oldest tool results, OpenAI's Responses replaces the conversation so far by a summary.
    /// The model reads less, and the cached prefix is lost each time. Within [`CLEAR_TOKENS`];
    /// default: never. Other APIs refuse it.
    pub fn clear_above(mut self, tokens: u32) -> Self {
        self.settings.clear_above = Some(tokens);
        self
    }

    /// Sets whether `<think>`, `<thinking>`, `<reasoning>` or `<thought>` at the beginning of an answer
    /// contains reasoning, which is not part of the answer. Default: true, but not at the own APIs of
    /// OpenAI, Anthropic and Gemini, which separate reasoning themselves.
    ///
    /// A closing tag without an opening one, as the templates of some models make it, is found when the
    /// answer is complete: its reasoning was then streamed as text.
    pub fn think_tags(mut self, are_reasoning: bool) -> Self {
        self.settings.think_tags = Some(are_reasoning);
        self
    }

    /// Sets the time limit without data, more than zero. Default: [`DEFAULT_IDLE_TIMEOUT`].
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets the time limit of a request, more than zero. Default: [`DEFAULT_TIMEOUT`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the client, such as one that trusts your own certificate authority. Default: a client
    /// that connects to every address: the operator chooses the model's address, not a model.
    pub fn client(mut self, client: HttpClient) -> Self {
        self.client = Some(client);
        self
    }

    /// Checks everything and builds. Sends no request.
    ///
    /// # Errors
    /// [`InvalidVendorModelError`] with what to change.
    pub fn build(self) -> Result<VendorModel, InvalidVendorModelError> {
        let ModelName { vendor, model } = &self.name;
        if model.is_empty() {
            return Err(InvalidVendorModelError::NoModel { vendor: *vendor });
        }
        let is_path = model.split('/').any(|part| part == "." || part == "..");
        if is_path || model.chars().any(|c| c.is_whitespace() || c.is_control()) {
            let model = model.escape_debug().to_string();
            return Err(InvalidVendorModelError::ModelName { model });
        }
        self.check_settings()?;
        let base_url = self.base_url.as_deref().unwrap_or_else(|| vendor.base_url());
        let base_url = BaseUrl::parse(base_url)?;
        if let Some(api) = self.api.filter(|_| *vendor != Vendor::OpenAi) {
            return Err(InvalidVendorModelError::Api { vendor: *vendor, api });
        }
        let api = self.api.unwrap_or(match base_url.is_at(OPENAI_HOST) {
            true => OpenAiApi::Responses,
            false => OpenAiApi::ChatCompletions,
        });
        if let Some(key) = &self.key {
            if !is_key(key.expose()) {
                return Err(InvalidVendorModelError::Key);
            }
            if !base_url.is_private() {
                return Err(base_url.in_the_clear().into());
            }
        }
        let protocol = vendor.protocol(api);
        let loads_tools = protocol.loads_tools(model);
        self.check_support(protocol.clears(), loads_tools.is_some())?;
        let at_vendor = base_url.as_str().trim_end_matches('/') == vendor.base_url();
        let loads_tools =
            self.settings.tool_search.unwrap_or(at_vendor && loads_tools == Some(true));
        let separates_reasoning = at_vendor && vendor.separates_reasoning();
        Ok(VendorModel {
            loads_tools,
            think_tags: self.settings.think_tags.unwrap_or(!separates_reasoning),
            name: self.name.to_string(),
            vendor: *vendor,
            protocol,
            model: model.clone(),
            base_url,
            no_key: self.no_key.filter(|_| self.key.is_none()),
            key: self.key,
            settings: self.settings,
            idle_timeout: self.idle_timeout,
            timeout: self.timeout,
            client: self.client.unwrap_or_else(default_client),
            menus: MenuCache::default(),
            conversations: Conversations::default(),
            form: OnceLock::new(),
        })
    }

    /// Refuses settings that the API does not have.
    fn check_support(
        &self,
        clears: bool,
        loads_tools: bool,
    ) -> Result<(), InvalidVendorModelError> {
        let (setting, expected, found) =
            match (self.settings.clear_above, self.settings.tool_search) {
                (Some(tokens), _) if !clears => {
                    ("clear_above", "absent: this API makes no room", tokens.to_string())
                }
                (_, Some(true)) if !loads_tools => {
                    ("tool_search", "false: this API does not load tools", "true".to_owned())
                }
                _ => return Ok(()),
            };
        Err(InvalidVendorModelError::Setting { setting, expected: expected.to_owned(), found })
    }

    fn check_settings(&self) -> Result<(), InvalidVendorModelError> {
        let invalid = |setting, expected, found| {
            Err(InvalidVendorModelError::Setting { setting, expected, found })
        };
        let Settings { max_output_tokens, temperature, clear_above, .. } = &self.settings;
        for (setting, tokens, valid) in [
            ("max_output_tokens", max_output_tokens, OUTPUT_TOKENS),
            ("clear_above", clear_above, CLEAR_TOKENS),
        ] {
            if let Some(tokens) = tokens.filter(|tokens| !valid.contains(tokens)) {
                let (least, most) = valid.into_inner();
                return invalid(setting, format!("from {least} to {most}"), tokens.to_string());
            }
        }
        if let Some(found) = temperature.filter(|found| !TEMPERATURES.contains(found)) {
            let (least, most) = TEMPERATURES.into_inner();
            return invalid("temperature", format!("from {least} to {most}"), found.to_string());
        }
        let times = [("idle_timeout", self.idle_timeout), ("timeout", self.timeout)];
        match times.into_iter().find(|(_, time)| time.is_zero()) {
            Some((setting, _)) => invalid(setting, "more than zero".to_owned(), "zero".to_owned()),
            None => Ok(()),
        }
    }
}

// An unchecked base URL may contain a password.
toolcrib_core::__internal::debug_fields!(
    VendorModelBuilder,
    builder,
    name = builder.name,
    has_base_url = builder.has_base_url(),
    has_key = builder.has_key(),
    ..
);

/// Whether a text is valid as a key in a header.
pub(super) fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A client that connects to every address except the metadata services for machine credentials.
fn default_client() -> HttpClient {
    let everywhere = ["0.0.0.0/0", "::/0"].into_iter().filter_map(|net| net.parse().ok());
    HttpClient::builder().allow_addresses(everywhere).build()
}

//! A model behind a vendor's API.

use std::{fmt, ops::RangeInclusive, sync::Arc, time::Duration};

use futures_util::TryFutureExt as _;
use toolcrib_core::{Model, ModelRequest, ModelStream, Secret};
use toolcrib_scope::http::HttpClient;

use super::{
    base_url::{BaseUrl, InvalidBaseUrl},
    exchange,
    menu_cache::MenuCache,
    openai::OpenAiApi,
    protocol::Protocol,
    settings::{ReasoningEffort, Settings},
    vendor::{ModelName, Vendor},
};

/// How long nothing may come before a request is given up. Models that reason may be silent for
/// minutes.
pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a request may take in all.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// How many tokens an answer may be allowed to have. Each model has its own limit; these bounds only
/// catch slips.
pub const OUTPUT_TOKENS: RangeInclusive<u32> = 1..=10_000_000;

/// The temperatures that there are. Some vendors' end at 1.
pub const TEMPERATURES: RangeInclusive<f64> = 0.0..=2.0;

/// Where OpenAI's own API is; at subdomains, for data that must not leave a region.
const OPENAI_HOST: &str = "api.openai.com";

/// A model behind a vendor's API, or behind a server that speaks it.
///
/// It asks once per request and streams the answer; nothing is retried, since a retry may be another
/// vendor's. The text of an answer that breaks off has been passed on by then, and the error is of
/// class [`Incomplete`](toolcrib_core::ModelErrorClass::Incomplete).
///
/// Redirects are refused. The key goes to the base URL's host and nowhere else, and is in no error.
/// Needs a tokio runtime with I/O and time.
///
/// ```no_run
/// use toolcrib_core::Secret;
/// use toolcrib_models::{Vendor, VendorModel};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // As the vendor's own SDKs do: the key from the environment.
/// let claude = VendorModel::from_env("anthropic:claude-sonnet-5-5")?;
///
/// // A server of one's own that speaks OpenAI's protocol.
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
    pub(super) idle_timeout: Duration,
    pub(super) timeout: Duration,
    pub(super) client: HttpClient,
    pub(super) menus: MenuCache,
}

impl VendorModel {
    /// Begins a model, by the name that its vendor gives it.
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

    /// Whose API it is behind.
    pub fn vendor(&self) -> Vendor {
        self.vendor
    }

    /// What the vendor calls it.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Where that API is.
    pub fn base_url(&self) -> &str {
        self.base_url.as_str()
    }

    /// Whether its API is the vendor's own, and no other server that speaks as it does.
    pub fn is_at_vendor(&self) -> bool {
        self.base_url.as_str().trim_end_matches('/') == self.vendor.base_url()
    }

    /// Whether it has a key to show.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Why it lacks the key that it needs; it is there then, and answers nothing.
    pub fn no_key(&self) -> Option<&str> {
        self.no_key.as_deref()
    }

    /// Asks its server which models there are: that it can be reached, and that the key is taken.
    /// The answer comes within ten seconds.
    ///
    /// # Errors
    /// [`ModelError`](toolcrib_core::ModelError), of the same classes as an answer's.
    pub async fn list_models(&self) -> Result<Vec<String>, toolcrib_core::ModelError> {
        exchange::list_models(self).await
    }
}

impl Model for VendorModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn states_cost(&self) -> bool {
        false
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        Box::pin(
            exchange::begin(self, request).map_ok(exchange::Exchange::chunks).try_flatten_stream(),
        )
    }
}

impl fmt::Debug for VendorModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VendorModel")
            .field("name", &self.name)
            .field("base_url", &self.base_url.as_str())
            .field("has_key", &self.has_key())
            .finish_non_exhaustive()
    }
}

/// Builds a [`VendorModel`].
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

/// A model that cannot be made as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidVendorModel {
    /// It has no name.
    #[error("no model is named; write `{vendor}:MODEL`")]
    NoModel {
        /// Whose it would be.
        vendor: Vendor,
    },
    /// Its name cannot stand in a request.
    #[error(
        "`{model}` is no name of a model: it holds white space, control characters, or parts of a path"
    )]
    ModelName {
        /// The name, as it may be shown.
        model: String,
    },
    /// Its base URL is not used.
    #[error(transparent)]
    BaseUrl(#[from] InvalidBaseUrl),
    /// An API is chosen where there is no choice.
    #[error("{vendor} has one API, and `{}` is one of OpenAI's; choose none", .api.as_str())]
    Api {
        /// Whose it is.
        vendor: Vendor,
        /// What was chosen.
        api: OpenAiApi,
    },
    /// A setting is out of its bounds.
    #[error("`{setting}` must be {expected}, and is {found}")]
    Setting {
        /// Its name, as the builder and a project file have it.
        setting: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// The key cannot stand in a header.
    #[error("the key cannot be sent: it holds white space or characters outside of ASCII")]
    Key,
}

impl VendorModelBuilder {
    /// Whose API it will be behind.
    pub fn vendor(&self) -> Vendor {
        self.name.vendor
    }

    pub(super) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    pub(super) fn has_base_url(&self) -> bool {
        self.base_url.is_some()
    }

    /// Sets where the API is; the [vendor's](Vendor::base_url) unless set. As in the vendor's own
    /// SDK, it ends before the part that all its APIs have in common (`/v1` belongs to it with
    /// OpenAI and not with Anthropic). `http` with a key only goes to this machine.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets by which of OpenAI's APIs the model is spoken to; only for [`Vendor::OpenAi`]. Unless set,
    /// by Responses where the base URL is OpenAI's own, and by Chat Completions where it is not.
    pub fn api(mut self, api: OpenAiApi) -> Self {
        self.api = Some(api);
        self
    }

    /// Sets the key. Without one none is sent, which servers of one's own often take.
    pub fn key(mut self, key: Secret) -> Self {
        self.key = Some(key);
        self
    }

    /// Says why the key that the model needs is not there. It can be built all the same, so that all
    /// else can be looked at, and every request fails with that text before anything is sent.
    pub fn without_key(mut self, reason: impl Into<String>) -> Self {
        self.no_key = Some(reason.into());
        self
    }

    /// Sets how many tokens an answer may have, reasoning included, within [`OUTPUT_TOKENS`]. Unless
    /// set, the vendor's own limit; Anthropic has none and gets 8,192.
    pub fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.settings.max_output_tokens = Some(tokens);
        self
    }

    /// Sets the temperature, within [`TEMPERATURES`]. Some models take none.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.settings.temperature = Some(temperature);
        self
    }

    /// Sets how much the model thinks before it answers. Models that cannot refuse it.
    pub fn reasoning(mut self, effort: ReasoningEffort) -> Self {
        self.settings.reasoning = Some(effort);
        self
    }

    /// Sets whether images and the like in results of tools are sent, beside the text that names
    /// them. Unless set, they are where the vendor's API takes them; not each of its models does.
    pub fn result_blocks(mut self, send: bool) -> Self {
        self.settings.result_blocks = Some(send);
        self
    }

    /// Sets how long nothing may come, more than zero; [`DEFAULT_IDLE_TIMEOUT`] unless set.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets how long a request may take in all, more than zero; [`DEFAULT_TIMEOUT`] unless set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the client, such as one that trusts an authority of one's own. Unless set, one that
    /// goes to every address: where a model is, its operator says, and no model.
    pub fn client(mut self, client: HttpClient) -> Self {
        self.client = Some(client);
        self
    }

    /// Checks everything and builds. Nobody is asked yet.
    ///
    /// # Errors
    /// [`InvalidVendorModel`] says what to change.
    pub fn build(self) -> Result<VendorModel, InvalidVendorModel> {
        let ModelName { vendor, model } = &self.name;
        if model.is_empty() {
            return Err(InvalidVendorModel::NoModel { vendor: *vendor });
        }
        let is_path = model.split('/').any(|part| part == "." || part == "..");
        if is_path || model.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(InvalidVendorModel::ModelName { model: model.escape_debug().to_string() });
        }
        self.check_settings()?;
        let base_url = self.base_url.as_deref().unwrap_or_else(|| vendor.base_url());
        let base_url = BaseUrl::parse(base_url)?;
        if let Some(api) = self.api.filter(|_| *vendor != Vendor::OpenAi) {
            return Err(InvalidVendorModel::Api { vendor: *vendor, api });
        }
        let api = self.api.unwrap_or(match base_url.is_at(OPENAI_HOST) {
            true => OpenAiApi::Responses,
            false => OpenAiApi::ChatCompletions,
        });
        if let Some(key) = &self.key {
            if !is_key(key.expose()) {
                return Err(InvalidVendorModel::Key);
            }
            if !base_url.is_private() {
                return Err(base_url.in_the_clear().into());
            }
        }
        Ok(VendorModel {
            name: self.name.to_string(),
            vendor: *vendor,
            protocol: vendor.protocol(api),
            model: model.clone(),
            base_url,
            no_key: self.no_key.filter(|_| self.key.is_none()),
            key: self.key,
            settings: self.settings,
            idle_timeout: self.idle_timeout,
            timeout: self.timeout,
            client: self.client.unwrap_or_else(exchange::default_client),
            menus: MenuCache::default(),
        })
    }

    fn check_settings(&self) -> Result<(), InvalidVendorModel> {
        let invalid = |setting, expected, found| {
            Err(InvalidVendorModel::Setting { setting, expected, found })
        };
        let Settings { max_output_tokens, temperature, .. } = &self.settings;
        if let Some(tokens) = max_output_tokens.filter(|tokens| !OUTPUT_TOKENS.contains(tokens)) {
            let (least, most) = OUTPUT_TOKENS.into_inner();
            let expected = format!("from {least} to {most}");
            return invalid("max_output_tokens", expected, tokens.to_string());
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

impl fmt::Debug for VendorModelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VendorModelBuilder")
            .field("name", &self.name)
            // A base URL that was not checked may hold a password.
            .field("has_base_url", &self.has_base_url())
            .field("has_key", &self.has_key())
            .finish_non_exhaustive()
    }
}

/// Whether a text can stand in a header as a key.
pub(super) fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

//! Plugins: parts of an engine that are added and removed under one id.

use std::{
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use toolcrib_core::{
    __internal::panic_text, IntoTool, InvalidToolError, InvalidToolNameError, Middleware, Reducer,
    Tool, ToolName, ToolProvider,
};

use crate::{
    provider::{OnFailure, Source},
    skills::{Skill, SkillOrigin, SkillSource},
};

/// Tools, providers, reducers, skills and middleware that belong together.
///
/// Everything that a plugin registers carries its id: in [`ToolDefinition::plugin`], in a
/// provider's path and in [`Skill::plugin`]. [`Engine::without_plugin`] is the engine without these
/// parts.
///
/// [`ToolDefinition::plugin`]: toolcrib_core::ToolDefinition::plugin
/// [`Engine::without_plugin`]: crate::Engine::without_plugin
pub trait Plugin: Send + Sync {
    /// The id: 1 to 64 of `a-z A-Z 0-9 _ -`, unique in an engine.
    fn id(&self) -> &str;

    /// Registers the plugin's parts. Called once per engine.
    ///
    /// # Errors
    /// The reason why it failed; the engine is then not built.
    fn register(&self, registrar: &mut PluginRegistrar)
    -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// Collects the parts of one plugin.
#[derive(Default)]
pub struct PluginRegistrar {
    pub(crate) tools: Vec<Result<Tool, InvalidToolError>>,
    pub(crate) sources: Vec<Source>,
    pub(crate) reducers: Vec<Arc<dyn Reducer>>,
    pub(crate) skills: Vec<Skill>,
    pub(crate) skill_sources: Vec<SkillOrigin>,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
}

impl PluginRegistrar {
    /// Adds a tool to the baseline registry.
    pub fn tool(&mut self, tool: impl IntoTool) -> &mut Self {
        self.tools.push(tool.into_tool());
        self
    }

    /// Adds a provider, after those already added.
    pub fn provider(&mut self, provider: Arc<dyn ToolProvider>) -> &mut Self {
        self.provider_with(provider, OnFailure::Fail)
    }

    /// Adds a provider, with what happens when listing it fails.
    pub fn provider_with(
        &mut self,
        provider: Arc<dyn ToolProvider>,
        on_failure: OnFailure,
    ) -> &mut Self {
        self.provider_with_alternatives(provider, [], on_failure)
    }

    /// Adds several providers as one source, which is listed by the first; its alternatives are
    /// used only when a rule says [`retry_other`](toolcrib_core::ReliabilityAction::RetryOther).
    pub fn provider_with_alternatives(
        &mut self,
        provider: Arc<dyn ToolProvider>,
        alternatives: impl IntoIterator<Item = Arc<dyn ToolProvider>>,
        on_failure: OnFailure,
    ) -> &mut Self {
        self.sources.push(Source::new(provider, on_failure).or(alternatives));
        self
    }

    /// Adds a reducer; one per tool.
    pub fn reducer(&mut self, reducer: impl Reducer) -> &mut Self {
        self.reducers.push(Arc::new(reducer));
        self
    }

    /// Adds a skill, after those already added.
    pub fn skill(&mut self, skill: Skill) -> &mut Self {
        self.skills.push(skill);
        self
    }

    /// Adds a source of skills, after those already added: each turn uses the skills as they are
    /// when it begins. Only the host makes settings for all skills, such as
    /// [`Skills::focus`](crate::Skills::focus).
    pub fn skill_source(&mut self, source: impl SkillSource + 'static) -> &mut Self {
        self.skill_sources.push(SkillOrigin::Source(Arc::new(source)));
        self
    }

    /// Adds a middleware, after those already added.
    pub fn middleware(&mut self, middleware: impl Middleware) -> &mut Self {
        self.middleware.push(Arc::new(middleware));
        self
    }
}

toolcrib_core::__internal::debug_fields!(
    PluginRegistrar,
    registrar,
    tools = registrar.tools.len(),
    sources = registrar.sources.len(),
    reducers = registrar.reducers.len(),
    skills = registrar.skills.len(),
    skill_sources = registrar.skill_sources.len(),
    middleware = registrar.middleware.len()
);

/// A plugin that cannot be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// The id is not valid.
    #[error("the id of a plugin follows the rules of tool names: {0}")]
    Id(#[from] InvalidToolNameError),
    /// Another plugin has the id.
    #[error("two plugins are called `{0}`; ids are unique in an engine")]
    Twice(Arc<str>),
    /// Its registration failed or panicked.
    #[error("the plugin `{plugin}` failed to register: {source}")]
    Register {
        /// The plugin.
        plugin: Arc<str>,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Collects and checks a plugin's parts.
pub(crate) fn register(plugin: &dyn Plugin) -> Result<(Arc<str>, PluginRegistrar), PluginError> {
    let id: Arc<str> = ToolName::new(plugin.id())?.as_str().into();
    let mut registrar = PluginRegistrar::default();
    catch_unwind(AssertUnwindSafe(|| plugin.register(&mut registrar)))
        .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic)).into()))
        .map_err(|source| PluginError::Register { plugin: Arc::clone(&id), source })?;
    Ok((id, registrar))
}

/// A middleware, and its name in events and messages. The name is read once: a later call could
/// return another one, or panic in the middle of a call.
#[derive(Clone)]
pub(crate) struct NamedMiddleware {
    pub(crate) middleware: Arc<dyn Middleware>,
    pub(crate) label: Arc<str>,
}

/// A part of an engine, with the plugin that added it.
#[derive(Clone)]
pub(crate) struct Contribution<T> {
    pub(crate) item: T,
    pub(crate) plugin: Option<Arc<str>>,
}

impl<T> Contribution<T> {
    /// A part that no plugin added.
    pub(crate) fn by_host(item: T) -> Self {
        Self { item, plugin: None }
    }

    /// A part that a plugin added.
    pub(crate) fn by(plugin: &Arc<str>, item: T) -> Self {
        Self { item, plugin: Some(Arc::clone(plugin)) }
    }

    /// Another part of the same origin.
    pub(crate) fn with<U>(self, item: impl FnOnce(T) -> U) -> Contribution<U> {
        Contribution { item: item(self.item), plugin: self.plugin }
    }

    /// Whether it stays when that plugin is removed.
    pub(crate) fn stays_without(&self, plugin: &str) -> bool {
        self.plugin.as_deref() != Some(plugin)
    }
}

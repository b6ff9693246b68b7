//! Plugins: what comes together under one id, and leaves with it.

use std::{
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use toolcrib_core::{
    IntoTool, InvalidTool, InvalidToolName, Middleware, Reducer, Tool, ToolName, ToolProvider,
    panic_text,
};

use crate::{
    skills::{Skill, SkillSource, SkillsFrom},
    sources::{OnFailure, Source},
};

/// Tools, providers, reducers, skills and middleware that come together.
///
/// All that a plugin registers carries its id: in [`ToolDefinition::plugin`], in a provider's path
/// and in [`Skill::plugin`]. [`Engine::without_plugin`] is the engine without any of it.
///
/// [`ToolDefinition::plugin`]: toolcrib_core::ToolDefinition::plugin
/// [`Engine::without_plugin`]: crate::Engine::without_plugin
pub trait Plugin: Send + Sync {
    /// The id: 1 to 64 of `a-z A-Z 0-9 _ -`, unique in an engine.
    fn id(&self) -> &str;

    /// Registers what the plugin brings. Called once per engine.
    ///
    /// # Errors
    /// Why it cannot; the engine is then not built.
    fn register(&self, registrar: &mut PluginRegistrar)
    -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// Takes what one plugin brings.
#[derive(Default)]
pub struct PluginRegistrar {
    pub(crate) tools: Vec<Result<Tool, InvalidTool>>,
    pub(crate) sources: Vec<Source>,
    pub(crate) reducers: Vec<Arc<dyn Reducer>>,
    pub(crate) skills: Vec<Skill>,
    pub(crate) skill_sources: Vec<SkillsFrom>,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
}

impl PluginRegistrar {
    /// Adds a tool to the baseline registry.
    pub fn tool(&mut self, tool: impl IntoTool) -> &mut Self {
        self.tools.push(tool.into_tool());
        self
    }

    /// Adds a provider, behind those that are there.
    pub fn provider(&mut self, provider: Arc<dyn ToolProvider>) -> &mut Self {
        self.source(provider, OnFailure::Fail)
    }

    /// Adds a provider, and says what happens when it cannot be listed.
    pub fn source(&mut self, provider: Arc<dyn ToolProvider>, on_failure: OnFailure) -> &mut Self {
        self.source_with_alternatives(provider, [], on_failure)
    }

    /// Adds several providers as one source, which is listed by the first; its alternatives are asked
    /// only when a rule says [`retry_other`](toolcrib_core::Then::RetryOther).
    pub fn source_with_alternatives(
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

    /// Adds a skill, behind those that are there.
    pub fn skill(&mut self, skill: Skill) -> &mut Self {
        self.skills.push(skill);
        self
    }

    /// Adds a source of skills, behind those that are there: each turn has them as they are when it
    /// begins. What holds for all skills, such as [`Skills::focus`](crate::Skills::focus), says the
    /// host alone.
    pub fn skill_source(&mut self, source: impl SkillSource + 'static) -> &mut Self {
        self.skill_sources.push(SkillsFrom::Source(Arc::new(source)));
        self
    }

    /// Adds a middleware, behind those that are there.
    pub fn middleware(&mut self, middleware: impl Middleware) -> &mut Self {
        self.middleware.push(Arc::new(middleware));
        self
    }
}

impl std::fmt::Debug for PluginRegistrar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginRegistrar")
            .field("tools", &self.tools.len())
            .field("sources", &self.sources.len())
            .field("reducers", &self.reducers.len())
            .field("skills", &self.skills.len())
            .field("skill_sources", &self.skill_sources.len())
            .field("middleware", &self.middleware.len())
            .finish()
    }
}

/// A plugin that cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// No id at all, or not one.
    #[error("the id of a plugin follows the rules of tool names: {0}")]
    Id(#[from] InvalidToolName),
    /// The id is taken.
    #[error("two plugins are called `{0}`; an engine takes each once")]
    Twice(Arc<str>),
    /// It said that it cannot, or panicked.
    #[error("the plugin `{plugin}` could not register what it brings: {source}")]
    Register {
        /// The plugin.
        plugin: Arc<str>,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// What a plugin brings, once it has registered.
pub(crate) fn register(plugin: &dyn Plugin) -> Result<(Arc<str>, PluginRegistrar), PluginError> {
    let id: Arc<str> = ToolName::new(plugin.id())?.as_str().into();
    let mut registrar = PluginRegistrar::default();
    catch_unwind(AssertUnwindSafe(|| plugin.register(&mut registrar)))
        .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic)).into()))
        .map_err(|source| PluginError::Register { plugin: Arc::clone(&id), source })?;
    Ok((id, registrar))
}

/// A middleware, and what it is called in events and messages. It is asked for that once: what it
/// answers later could be another name, or a panic in the midst of a call.
#[derive(Clone)]
pub(crate) struct NamedMiddleware {
    pub(crate) middleware: Arc<dyn Middleware>,
    pub(crate) label: Arc<str>,
}

/// Something in an engine, and the plugin that brought it.
#[derive(Clone)]
pub(crate) struct Brought<T> {
    pub(crate) item: T,
    pub(crate) plugin: Option<Arc<str>>,
}

impl<T> Brought<T> {
    /// Something that no plugin brought.
    pub(crate) fn by_host(item: T) -> Self {
        Self { item, plugin: None }
    }

    /// Something that a plugin brought.
    pub(crate) fn by(plugin: &Arc<str>, item: T) -> Self {
        Self { item, plugin: Some(Arc::clone(plugin)) }
    }

    /// Something else that came along with it.
    pub(crate) fn with<U>(self, item: impl FnOnce(T) -> U) -> Brought<U> {
        Brought { item: item(self.item), plugin: self.plugin }
    }

    /// Whether some other than that plugin brought it.
    pub(crate) fn stays_without(&self, plugin: &str) -> bool {
        self.plugin.as_deref() != Some(plugin)
    }
}

//! The engine.

pub(crate) mod builder;

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::{
    Arguments, Effect, Events, Fact, Identity, Menu, Message, ReliabilityRule, SecretError,
    SecretReference, StoredArguments, Tool, ToolCall,
};
pub use toolcrib_search::Encoder;

pub use self::builder::{BuildError, EngineBuilder};
pub use crate::{
    deferral::{CALL_TOOL, Deferral, FOUND_PER_NEED, Reveal, RevealedTools, SEARCH_TOOLS},
    parts::Limits,
    personality::{DEFAULT_PERSONALITY, DuplicatePersonalityError, Personality},
    plugin::{Plugin, PluginError, PluginRegistrar},
};
use crate::{
    middleware::reducers::Reducers,
    parts::EngineParts,
    pipe::read_call,
    secrets::Redactor,
    skills::Skills,
    turn::{Turn, TurnError, TurnOptions},
    validators::off::is_large_text,
};

/// Decides per iteration which tools a model may see, limits its calls, and cleans their results.
/// One engine serves many turns at the same time; cloning shares it.
///
/// The agent loop, the command line and the gateway use only this API. With your own loop:
///
/// ```
/// use toolcrib_core::{Tool, ToolCall, ToolContext};
/// use toolcrib_engine::{Engine, TurnOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// #[derive(serde::Deserialize)]
/// struct Args { order: u32 }
///
/// let engine = Engine::builder()
///     .tool(Tool::builder("find_order")
///         .description("The state of an order.")
///         .input_schema(serde_json::json!({
///             "type": "object",
///             "properties": { "order": { "type": "integer" } },
///             "required": ["order"],
///         }))
///         .handler(|args: Args, _cx: ToolContext| async move {
///             format!("order {} is on its way", args.order)
///         })?)
///     .build()?;
///
/// let mut turn = engine.turn(TurnOptions::default())?;
/// loop {
///     let mut iteration = turn.iteration().await?;
///     // Show `iteration.menu().rendering()` to your model. Here, it requests one call …
///     let calls = if iteration.number() == 1 {
///         vec![ToolCall::new("call_1", "find_order", serde_json::json!({ "order": 1042 }))]
///     } else {
///         vec![] // … and then answers.
///     };
///     if calls.is_empty() {
///         break;
///     }
///     for result in iteration.execute(calls).await {
///         assert_eq!(&*result.text, "order 1042 is on its way");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<EngineParts>);

impl Engine {
    /// Starts a builder of an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Begins a turn: one user message, up to the answer.
    ///
    /// # Errors
    /// [`TurnError`] when the personality, or a skill that should be active from the start, does
    /// not exist, or this caller may not activate it.
    pub fn turn(&self, options: TurnOptions) -> Result<Turn, TurnError> {
        let (parts, problems) = self.parts_now();
        Turn::begin(parts, options, problems)
    }

    /// The deferred tools that a conversation has found, for the turn that
    /// [continues](TurnOptions::revealed) it: with the same messages, the same tools in the same
    /// order. An agent's runs do this themselves.
    pub fn revealed_in(&self, messages: &[Message]) -> RevealedTools {
        RevealedTools::of(messages, self.0.visibility.deferral.limit())
    }

    /// Whether [`turn`](Self::turn) would begin a turn with these options, without beginning one:
    /// for a server that responds before there is anything to do.
    ///
    /// # Errors
    /// Those of [`turn`](Self::turn).
    pub fn check_turn(&self, options: &TurnOptions) -> Result<(), TurnError> {
        let (parts, _) = self.parts_now();
        Turn::check(&parts, options)
    }

    /// Arguments that were stored for an approval, with the present values of their secrets, which are
    /// redacted from now on.
    ///
    /// # Errors
    /// [`SecretError`] if a secret cannot be read.
    pub async fn resolve_arguments(&self, stored: &StoredArguments) -> Result<Value, SecretError> {
        let (parts, _) = self.parts_now();
        let Some(source) = &parts.secrets else {
            return match stored.secrets.first() {
                Some(first) => Err(SecretError::Unknown { name: Arc::clone(&first.name) }),
                None => Ok(stored.value.clone()),
            };
        };
        for SecretReference { name, .. } in &stored.secrets {
            let secret = source.resolve(name).await?;
            parts.redactor.learn_named(name, secret.expose()).map_err(|short| {
                SecretError::Unreadable { name: Arc::clone(name), source: short.into() }
            })?;
        }
        stored.resolve(&**source).await
    }

    /// Reads the arguments of a model's calls before they are made, and returns those for the conversation,
    /// in the same order: as the model wrote them if they are JSON, else as the tool will receive them. The
    /// calls are read once, and [`Iteration::execute`](crate::Iteration::execute) makes them as it would make
    /// the ones that were passed. Without this, a conversation contains what a model wrote where another
    /// text was made of it: an object with a comma too many, or `"5"` for an integer.
    pub async fn read_calls(&self, menu: &Arc<Menu>, calls: &mut [ToolCall]) -> Vec<Arguments> {
        let (parts, _) = self.parts_now();
        let converts = parts.converts_text;
        let mut written = Vec::with_capacity(calls.len());
        for call in calls {
            let large = match &call.arguments {
                Arguments::Text(text) if is_large_text(text.len()) => text.len(),
                _ => {
                    written.push(read_call(menu, call, converts));
                    continue;
                }
            };
            let (menu, mut read) = (Arc::clone(menu), call.clone());
            let work = move || {
                let written = read_call(&menu, &mut read, converts);
                (written, read.arguments)
            };
            // The pipe reads, and refuses, what could not be read here.
            let done = parts.validators.aside(&call.name, large, work).await;
            let unread = || (call.arguments.clone(), call.arguments.clone());
            let (shown, arguments) = done.unwrap_or_else(|_| unread());
            call.arguments = arguments;
            written.push(shown);
        }
        written
    }

    /// This engine with a plugin added. Both share events, known secrets and compiled schemas;
    /// turns that have begun do not change.
    ///
    /// # Errors
    /// [`BuildError`] when the plugin does not fit; this engine is unchanged.
    pub fn with_plugin(&self, plugin: &dyn Plugin) -> Result<Self, BuildError> {
        let mut parts = self.0.to_change();
        parts.reducers = parts.reducers.copy(|_| true);
        parts.add_plugin(plugin)?;
        parts.check()?;
        Ok(Self(Arc::new(parts)))
    }

    /// This engine without the parts of a plugin: without its tools, providers, reducers, skills
    /// and middleware. Both share events, known secrets and compiled schemas; turns that have begun
    /// do not change. `None` when there is no such plugin.
    #[must_use]
    pub fn without_plugin(&self, id: &str) -> Option<Self> {
        let mut parts = self.0.to_change();
        parts.remove_plugin(id).then(|| Self(Arc::new(parts)))
    }

    /// The ids of the plugins, in order.
    pub fn plugins(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.plugins.iter().map(|id| &**id)
    }

    /// Whether a call of a conversation began work that still runs, such as a job.
    pub fn has_running_work(&self, conversation: &Identity) -> bool {
        self.0.session_state.has_running_work(conversation)
    }

    /// Whether a rule depends on the number of the iteration: then a conversation of several turns
    /// [continues](TurnOptions::iterations) it.
    pub fn reads_iteration(&self) -> bool {
        self.0.visibility.policy.reads(Fact::Iteration)
    }

    /// Whether a rule may end a conversation.
    pub fn may_halt(&self) -> bool {
        let rules = &self.0.visibility.policy.rules;
        rules.iter().any(|rule| rule.effect == Effect::Halt)
    }

    /// Whether a decision may depend on what earlier calls of a conversation have led to: that it has read
    /// content of unknown authors, that a rule ended it, or the number of its iterations.
    pub fn reads_restrictions(&self) -> bool {
        let visibility = &self.0.visibility;
        let policy = &visibility.policy;
        let depends = |tool: &Tool| tool.asks_when_tainted() || tool.reads_taint();
        policy.reads(Fact::Tainted)
            || policy.reads(Fact::Iteration)
            || self.may_halt()
            || self.0.registry.catalog().offered().iter().any(depends)
            // Tools of the host may ask for it too.
            || self.has_sources_besides(|id| {
                id.starts_with("mcp:") || id.starts_with("hub:") || id == "artifacts"
            })
    }

    /// Whether it may have tools other than those of these sources, by their ids: tools of the host,
    /// of skills, or of another source.
    pub fn has_tools_besides(&self, is_of_these: impl Fn(&str) -> bool) -> bool {
        !self.0.registry.is_empty()
            || self.0.artifact_port.is_some()
            || self.has_sources_besides(is_of_these)
            || !self.skills().is_empty()
    }

    fn has_sources_besides(&self, is_of_these: impl Fn(&str) -> bool) -> bool {
        self.0.sources.iter().any(|source| !is_of_these(source.item.provider.id()))
    }

    /// The events of all turns of this engine. A turn also has separate events.
    pub fn events(&self) -> &Events {
        &self.0.events
    }

    /// Redacts known secrets in everything that leaves a call.
    pub fn redactor(&self) -> &Redactor {
        &self.0.redactor
    }

    /// The reducers, which may be added and removed while turns run. An engine that was made by
    /// [adding](Self::with_plugin) or [removing](Self::without_plugin) a plugin has a separate list.
    pub fn reducers(&self) -> &Reducers {
        &self.0.reducers
    }

    /// All current skills of the engine. A turn has those that its personality reaches, see
    /// [`skills_of`](Self::skills_of), and keeps them as they are when it begins: [`Turn::skills`].
    pub fn skills(&self) -> Arc<Skills> {
        Arc::clone(&self.parts_now().0.visibility.skills)
    }

    /// The skills of a turn with this personality, or the default one: without those of plugins
    /// that it does not list. All skills if there is no such personality.
    pub fn skills_of(&self, personality: Option<&str>) -> Arc<Skills> {
        let (parts, _) = self.parts_now();
        let personality = personality.unwrap_or(DEFAULT_PERSONALITY);
        match parts.visibility.personalities.get(personality) {
            Some(personality) => parts.skills_of(personality),
            None => Arc::clone(&parts.visibility.skills),
        }
    }

    /// This engine with the current skills, and the problems in these.
    fn parts_now(&self) -> (Arc<EngineParts>, Vec<Arc<str>>) {
        self.0.skill_sources.now(&self.0)
    }

    /// The personalities for turns; one is called `default`.
    pub fn personalities(&self) -> impl ExactSizeIterator<Item = &Arc<Personality>> {
        self.0.visibility.personalities.iter()
    }

    /// The claims that roles depend on; a claim of several roles occurs several times.
    pub fn role_claims(&self) -> impl Iterator<Item = &Arc<str>> {
        let roles = &self.0.visibility.policy.roles;
        let holders = roles.names().filter_map(|role| roles.holders(role));
        holders.flat_map(|holders| holders.claims.keys())
    }

    /// The reliability rules for sources, models and tools that fail, in order, without the default
    /// one.
    pub fn reliability(&self) -> &[ReliabilityRule] {
        self.0.reliability.rules()
    }

    /// The limits of each turn.
    pub fn limits(&self) -> Limits {
        self.0.limits
    }
}

toolcrib_core::__internal::debug_fields!(
    Engine,
    engine,
    tools = engine.0.registry.len(),
    sources = engine.0.sources.len(),
    skills = engine.0.visibility.skills.iter().len(),
    rules = engine.0.visibility.policy.rules.len(),
    ..
);

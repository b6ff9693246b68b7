//! The engine and how it is built.

use std::{collections::HashMap, sync::Arc};

use toolcrib_core::{
    AlreadyRegistered, Approver, Events, InvalidTool, Journal, Policy, Reducer, Scoper, Tool,
    ToolName, ToolProvider, ToolRegistry,
};

use crate::{
    compose::Visibility,
    parts::{EngineParts, Limits},
    redactor::Redactor,
    skills::{READ_SKILL, Skills, SkillsProvider},
    turn::{Turn, TurnError, TurnOptions},
    validators::Validators,
};

/// Decides per iteration what a model may see, bounds what a call may do, and cleans what comes
/// back. One engine serves many turns at the same time; cloning shares it.
///
/// This is all that the agent loop, the command line and the gateway are built on. With a loop of
/// your own:
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
///     // Show `iteration.menu().rendering()` to your model. Here, it asks for one call …
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
pub struct Engine(Arc<EngineParts>);

/// An engine that cannot be built as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two tools have one name.
    #[error(transparent)]
    AlreadyRegistered(#[from] AlreadyRegistered),
    /// A tool's schema cannot be enforced.
    #[error("the input schema of tool `{tool}` ({origin}) cannot be enforced: {problem}")]
    Schema {
        /// The tool.
        tool: ToolName,
        /// Where it comes from.
        origin: Arc<str>,
        /// What is wrong.
        problem: Arc<str>,
    },
    /// A tool takes a name that the engine needs.
    #[error("tool `{READ_SKILL}` ({origin}) has a name that is reserved while there are skills")]
    ReservedName {
        /// Where it comes from.
        origin: Arc<str>,
    },
    /// Two reducers know one tool.
    #[error("two reducers are registered for tool `{0}`; only one can decide")]
    TwoReducers(String),
    /// The menu of skills could not be made a tool.
    #[error("the tool `{READ_SKILL}` cannot be made")]
    ReadSkill(#[source] InvalidTool),
    /// A panic would end the process instead of the call.
    #[error(
        "this program is compiled with `panic = \"abort\"`, so a panicking tool would end it; \
         set `panic = \"unwind\"`"
    )]
    PanicAborts,
}

impl Engine {
    /// Starts an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Begins a turn: one user message, up to the answer.
    ///
    /// # Errors
    /// [`TurnError`] when a skill that should be active from the start does not exist.
    pub fn turn(&self, options: TurnOptions) -> Result<Turn, TurnError> {
        Turn::begin(Arc::clone(&self.0), options)
    }

    /// Where to listen to all turns of this engine. A turn has events of its own too.
    pub fn events(&self) -> &Events {
        &self.0.events
    }

    /// What redacts known secrets in everything that leaves a call.
    pub fn redactor(&self) -> &Redactor {
        &self.0.redactor
    }

    /// The skills, in order.
    pub fn skills(&self) -> &Skills {
        &self.0.visibility.skills
    }

    /// The limits.
    pub fn limits(&self) -> Limits {
        self.0.limits
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("tools", &self.0.registry.len())
            .field("sources", &self.0.sources.len())
            .field("skills", &self.0.visibility.skills.iter().len())
            .field("rules", &self.0.visibility.policy.rules.len())
            .finish_non_exhaustive()
    }
}

/// Builds an [`Engine`].
#[derive(Default)]
#[must_use = "nothing is checked until `build`"]
pub struct EngineBuilder {
    tools: Vec<Tool>,
    sources: Vec<Arc<dyn ToolProvider>>,
    skills: Skills,
    policy: Policy,
    reducers: Vec<Arc<dyn Reducer>>,
    approver: Option<Arc<dyn Approver>>,
    scoper: Option<Arc<dyn Scoper>>,
    journal: Option<Arc<dyn Journal>>,
    secrets: Option<Redactor>,
    limits: Limits,
}

impl EngineBuilder {
    /// Adds a tool to the baseline registry.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds tools to the baseline registry, in order.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds a provider, behind the registry and those added before.
    pub fn provider(mut self, provider: Arc<dyn ToolProvider>) -> Self {
        self.sources.push(provider);
        self
    }

    /// Sets the skills.
    pub fn skills(mut self, skills: Skills) -> Self {
        self.skills = skills;
        self
    }

    /// Sets the policy. Default: everything is allowed.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Adds a reducer; one per tool.
    pub fn reducer(mut self, reducer: impl Reducer) -> Self {
        self.reducers.push(Arc::new(reducer));
        self
    }

    /// Sets who decides on calls that a rule wants asked about. Default: nobody, so they are
    /// denied.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sets what bounds a call before it runs.
    pub fn scoper(mut self, scoper: impl Scoper) -> Self {
        self.scoper = Some(Arc::new(scoper));
        self
    }

    /// Sets where intents and outcomes are written down.
    pub fn journal(mut self, journal: impl Journal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// Sets the secrets to redact. Default: those of the
    /// [process's environment](Redactor::from_environment).
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.secrets = Some(redactor);
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Checks everything and builds.
    ///
    /// # Errors
    /// [`BuildError`] says what to change.
    pub fn build(self) -> Result<Engine, BuildError> {
        if cfg!(panic = "abort") {
            return Err(BuildError::PanicAborts);
        }
        let validators = Validators::default();
        for tool in &self.tools {
            validators.check(tool).map_err(|problem| BuildError::Schema {
                tool: tool.name().clone(),
                origin: tool.origin().into(),
                problem,
            })?;
            if !self.skills.is_empty() && *tool.name() == READ_SKILL {
                return Err(BuildError::ReservedName { origin: tool.origin().into() });
            }
        }
        let registry = ToolRegistry::try_from(self.tools)?;
        let mut reducers = HashMap::new();
        for reducer in self.reducers {
            let name = reducer.tool_name().to_owned();
            if reducers.insert(name.clone(), reducer).is_some() {
                return Err(BuildError::TwoReducers(name));
            }
        }
        let skills = Arc::new(self.skills);
        // Made anew for each turn; made once here so that a turn cannot fail over it.
        SkillsProvider::new(&skills, &Arc::default()).map_err(BuildError::ReadSkill)?;
        Ok(Engine(Arc::new(EngineParts {
            registry: Arc::new(registry),
            sources: self.sources,
            visibility: Arc::new(Visibility { policy: self.policy, skills }),
            validators,
            redactor: self.secrets.unwrap_or_else(Redactor::from_environment),
            reducers,
            approver: self.approver,
            scoper: self.scoper,
            journal: self.journal,
            limits: self.limits,
            events: Events::new(),
        })))
    }
}

impl std::fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineBuilder").field("tools", &self.tools.len()).finish_non_exhaustive()
    }
}

//! A project as it is used: loaded once, then everything in it is known to be sound.

mod load;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use toolcrib_agent::{Agent, AgentBuilder};
use toolcrib_artifacts::Artifacts;
use toolcrib_config::Diagnostics;
use toolcrib_core::{Model, Policy, ReliabilityRule, Secret, SecretError, Tool};
use toolcrib_engine::{Engine, EngineBuilder, Limits, Personality, Redactor, Skills};
use toolcrib_mcp::McpClient;
use toolcrib_scope::database::Database;

pub use self::load::{LoadOptions, Mode};
use crate::{
    build::{
        DeclaredHub, DeclaredModel, DeclaredPersonality, Reliability, WithAlternatives, sources,
    },
    mcp::McpServer,
    plugin::FolderPlugin,
    secrets::EnvironmentSecrets,
    serve::{ServeToken, TokenError, TokenFile, token_file},
    skills::{InstallError, InstalledSkill, WatchedSkills},
    state::StateFolder,
};

/// A loaded project: everything that `toolcrib.toml` and the skill folders declare, checked.
///
/// As long as it lives no other process can make its databases anew.
#[derive(Clone)]
pub struct Project {
    name: Arc<str>,
    root: PathBuf,
    state: StateFolder,
    tools: Vec<Tool>,
    skills: Skills,
    /// The same while the project is in use; `None` where it has no folder.
    watched: Option<WatchedSkills>,
    policy: Policy,
    personalities: Vec<DeclaredPersonality>,
    model: Option<Arc<dyn Model>>,
    fallback_models: Vec<Arc<dyn Model>>,
    reliability: Reliability,
    models: Vec<DeclaredModel>,
    system: Option<Arc<str>>,
    limits: Limits,
    max_iterations: Option<u32>,
    turn_timeout: Option<Duration>,
    secrets: EnvironmentSecrets,
    mcp: Vec<McpServer>,
    hubs: Vec<DeclaredHub>,
    artifacts: Option<Artifacts>,
    artifacts_outlive_it: bool,
    held: Option<Arc<str>>,
    plugins: Vec<FolderPlugin>,
    tokens: Vec<ServeToken>,
    databases: Vec<Database>,
    warnings: Diagnostics,
}

impl Project {
    /// The project's name; its folder's unless the file gives one.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its folder, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where it writes, absolute. The folder may be missing while nothing had to be written.
    pub fn state(&self) -> &Path {
        self.state.path()
    }

    /// The declared tools, in the order of the file, then those of plugins. `read_skill` is not among
    /// them.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The skills, by name, then those of plugins, as they were when the project was loaded. An
    /// [engine](Self::engine_builder) of it has them as their files are whenever a turn begins.
    pub fn skills(&self) -> &Skills {
        &self.skills
    }

    /// Whether it has a folder of skills, which is looked at anew when a turn begins.
    pub fn watches_skills(&self) -> bool {
        self.watched.is_some()
    }

    /// The plugins that are folders of it, in the order of the file.
    pub fn plugins(&self) -> impl ExactSizeIterator<Item = &str> {
        self.plugins.iter().map(|plugin| &*plugin.id)
    }

    /// Unpacks an archive, `.zip` or `.tar.gz`, into the folder of skills, as one more skill. It is
    /// checked first, as the project's own skills are, and put in place as a whole or not at all; one
    /// of its name that is there is only replaced where `replace` says so, and one of a plugin never.
    /// Blocks.
    ///
    /// Whoever installs a skill trusts it: a model that activates it follows what it says.
    ///
    /// # Errors
    /// [`InstallError`]; nothing has changed then, but for [`InstallError::Displaced`].
    pub fn install_skill(
        &self,
        archive: &Path,
        replace: bool,
    ) -> Result<InstalledSkill, InstallError> {
        match &self.watched {
            Some(skills) => {
                let of_plugins = self.plugins.iter().filter_map(|plugin| plugin.skills.as_ref());
                skills.install(archive, replace, of_plugins)
            }
            None => Err(InstallError::NoProject),
        }
    }

    /// Roles, rules and what holds without one.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The declared personalities, in the order of the file. An engine has one called `default` in any
    /// case.
    pub fn personalities(&self) -> impl ExactSizeIterator<Item = &Personality> {
        self.personalities.iter().map(|declared| &declared.personality)
    }

    /// The model of a declared personality that has one of its own.
    pub fn personality_model(&self, personality: &str) -> Option<&Arc<dyn Model>> {
        let mut all = self.personalities.iter();
        all.find(|declared| declared.personality.id() == personality)?.model.as_ref()
    }

    /// The model, if the project or the options name one.
    pub fn model(&self) -> Option<&Arc<dyn Model>> {
        self.model.as_ref()
    }

    /// The models that rules may have asked instead, in order; none where the options name a model.
    pub fn fallback_models(&self) -> &[Arc<dyn Model>] {
        &self.fallback_models
    }

    /// The rules on what becomes of failures, in order.
    pub fn reliability(&self) -> &[ReliabilityRule] {
        self.reliability.rules()
    }

    /// The models that have a name of the project's own, in the order of the file.
    pub fn models(&self) -> &[DeclaredModel] {
        &self.models
    }

    /// The system text, if there is one.
    pub fn system(&self) -> Option<&Arc<str>> {
        self.system.as_ref()
    }

    /// The limits of a batch of calls; the engine's defaults where the file says nothing.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// How many iterations a turn may have before it is wrapped up, if the file says it.
    pub fn max_iterations(&self) -> Option<u32> {
        self.max_iterations
    }

    /// How long a turn may take, if the file says it.
    pub fn turn_timeout(&self) -> Option<Duration> {
        self.turn_timeout
    }

    /// The MCP servers: the project's own in the order of its file, those of `mcpServers` files, then
    /// those of plugins.
    pub fn mcp_servers(&self) -> &[McpServer] {
        &self.mcp
    }

    /// The hubs, in the order of the file, then those of plugins.
    pub fn hubs(&self) -> &[DeclaredHub] {
        &self.hubs
    }

    /// Where results that are too large for a model are kept; `None` where the project does not
    /// say so.
    pub fn artifacts(&self) -> Option<&Artifacts> {
        self.artifacts.as_ref()
    }

    /// Whether artifacts of a conversation with a name are still there when this process has ended.
    pub fn artifacts_outlive_it(&self) -> bool {
        self.artifacts_outlive_it
    }

    /// Why no server of it is started or dialed, if so: it is not trusted, or the options say it. Ends
    /// a sentence about a server.
    pub fn held(&self) -> Option<&str> {
        self.held.as_deref()
    }

    /// Ends all MCP servers and waits until nothing of them is left: no process, no task. From then
    /// on their tools answer `not_available`, in each engine of this project.
    pub async fn close(&self) {
        let clients = self.mcp.iter().filter_map(|server| server.client().ok());
        join_all(clients.map(McpClient::close)).await;
    }

    /// The tokens of a gateway over HTTP that the project declares.
    pub fn serve_tokens(&self) -> &[ServeToken] {
        &self.tokens
    }

    /// The value of a declared token, read now.
    ///
    /// # Errors
    /// [`SecretError`] says why its secret cannot be had.
    pub fn token(&self, token: &ServeToken) -> Result<Secret, SecretError> {
        self.secrets.get(&token.secret)
    }

    /// The token of a gateway over HTTP where none is declared: kept in the state folder, in a file
    /// that only its owner can read, and made there if it is missing. Blocks.
    ///
    /// # Errors
    /// [`TokenError`], also for a file that others can read.
    pub fn token_file(&self) -> Result<TokenFile, TokenError> {
        let cannot = |source| TokenError::Io { path: self.state().to_owned(), source };
        self.state.make().map_err(cannot)?;
        token_file(self.state())
    }

    /// The declared databases, in the order of the file.
    pub fn databases(&self) -> &[Database] {
        &self.databases
    }

    /// What is probably not as meant, though the project loads.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// An engine with the project's tools, MCP servers, hubs, skills, plugins, policy, secrets and
    /// limits, to be added to or built. The values of its secrets are redacted from the start.
    pub fn engine_builder(&self) -> EngineBuilder {
        let redactor = self.redactor();
        let engine = Engine::builder()
            .tools(of(&self.tools, |tool| tool.plugin().is_none()))
            .policy(self.policy.clone())
            .secrets(self.secrets.clone())
            .redactor(redactor)
            .limits(self.limits);
        let engine = match &self.watched {
            Some(skills) => engine.skill_source(skills.clone()),
            None => engine.skills(self.skills.clone()),
        };
        let engine = match &self.artifacts {
            Some(artifacts) => engine.artifacts(artifacts.clone()),
            None => engine,
        };
        let engine = self.reliability.add_to(engine);
        let engine = self.personalities().cloned().fold(engine, EngineBuilder::personality);
        let of_servers = sources(&self.mcp.iter().filter(|server| server.plugin().is_none()));
        let of_hubs = sources(&self.hubs.iter().filter(|hub| hub.plugin().is_none()));
        let engine = of_servers.into_iter().chain(of_hubs).fold(engine, |engine, source| {
            let WithAlternatives { provider, alternatives, on_failure } = source;
            engine.source_with_alternatives(provider, alternatives, on_failure)
        });
        self.plugins.iter().cloned().fold(engine, EngineBuilder::plugin)
    }

    /// What takes the project's secrets out of a text: those of the process, those that are
    /// declared, and those that stand in what is declared of MCP servers.
    pub fn redactor(&self) -> Redactor {
        let redactor = self.secrets.redactor();
        self.mcp.iter().for_each(|server| server.hide_from(&redactor));
        redactor
    }

    /// An agent over such an engine, with the project's model, system text and limits, to be
    /// changed or built. It cannot be built while there is no [`model`](Self::model).
    pub fn agent_builder(&self) -> AgentBuilder {
        let mut agent = Agent::builder().engine(|_| self.engine_builder());
        if let Some(model) = &self.model {
            agent = agent.shared_model(Arc::clone(model));
        }
        for model in &self.fallback_models {
            agent = agent.shared_fallback_model(Arc::clone(model));
        }
        for DeclaredPersonality { personality, model, .. } in &self.personalities {
            if let Some(model) = model {
                agent = agent.personality_model(Arc::clone(&personality.id), Arc::clone(model));
            }
        }
        if let Some(system) = &self.system {
            agent = agent.system(Arc::clone(system));
        }
        if let Some(iterations) = self.max_iterations {
            agent = agent.max_iterations(iterations);
        }
        if let Some(timeout) = self.turn_timeout {
            agent = agent.turn_timeout(timeout);
        }
        agent
    }
}

impl std::fmt::Debug for Project {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Project")
            .field("name", &self.name)
            .field("root", &self.root)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// Those of a list that one part of the project has.
fn of<T: Clone>(all: &[T], is_of_part: impl Fn(&&T) -> bool) -> Vec<T> {
    all.iter().filter(is_of_part).cloned().collect()
}

//! A loaded project: everything in it was validated once.

mod bound;
mod declared;
mod load;
mod models;
mod open;
mod parts;
pub(crate) mod plan;
pub(crate) mod plugin;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use toolcrib_agent::{Agent, AgentBuilder, Budget, TurnLimits};
use toolcrib_artifacts::Artifacts;
use toolcrib_capabilities::{
    database::{Database, postgres::PostgresDatabase},
    files::Files,
};
use toolcrib_config::Diagnostics;
use toolcrib_core::{KvStore, Model, Policy, ReliabilityRule, Secret, SecretError, Tool};
use toolcrib_engine::{Deferral, Engine, EngineBuilder, Limits, Personality, Redactor, Skills};
use toolcrib_mcp::McpClient;
use toolcrib_models::Vendor;

use self::parts::{
    ProjectAgent, ProjectModels, ProjectRemote, ProjectServing, ProjectState, ProjectTools,
};
use crate::{
    bind::alternatives::{EngineSource, sources},
    build::{
        DeclaredHub, DeclaredModel, DeclaredPersonality, Prices,
        mcp::server::McpServer,
        serve::{ServeSettings, ServeToken, TokenError, TokenFile, token_file},
    },
    skills::install::{InstallError, InstalledSkill},
    user::{approvals::ProjectApprovals, lock::Lock, server_log::path_of, sessions::Sessions},
};

/// A loaded project: everything that `toolcrib.toml` and the skill folders declare, checked.
///
/// While it exists, no other process can recreate its databases.
#[derive(Clone)]
pub struct Project {
    name: Arc<str>,
    root: PathBuf,
    tools: ProjectTools,
    agent: ProjectAgent,
    models: ProjectModels,
    remote: ProjectRemote,
    state: ProjectState,
    serving: ProjectServing,
    warnings: Diagnostics,
}

impl Project {
    /// The project's name; by default its folder's.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The absolute path of its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The state folder, absolute. It may not exist until something is written.
    pub fn state(&self) -> &Path {
        self.state.folder.path()
    }

    /// The declared tools, in the order of the file, then those of plugins. `read_skill` is not
    /// included.
    pub fn tools(&self) -> &[Tool] {
        &self.tools.tools
    }

    /// The skills, by name, then those of plugins, as of the time of loading. An
    /// [engine](Self::engine_builder) reloads changed skills at the start of a turn.
    pub fn skills(&self) -> &Skills {
        &self.tools.skills
    }

    /// Whether it has a skills folder, which is checked for changes at the start of each turn.
    pub fn watches_skills(&self) -> bool {
        self.tools.watched.is_some()
    }

    /// The plugins in folders of the project, in the order of the file.
    pub fn plugins(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tools.plugins.iter().map(|plugin| &*plugin.id)
    }

    /// Installs the skill of an archive, `.zip` or `.tar.gz`, into the skills folder. It is checked
    /// first, like the project's own skills, and installed as a whole or not at all. An existing
    /// skill of the same name is replaced only with `replace`, one of a plugin never. Blocking.
    ///
    /// An installed skill is trusted: a model that activates it follows its instructions.
    ///
    /// # Errors
    /// [`InstallError`]; nothing has changed then, except for [`InstallError::Displaced`].
    pub fn install_skill(
        &self,
        archive: &Path,
        replace: bool,
    ) -> Result<InstalledSkill, InstallError> {
        match &self.tools.watched {
            Some(skills) => {
                let of_plugins =
                    self.tools.plugins.iter().filter_map(|plugin| plugin.skills.as_ref());
                skills.install(archive, replace, of_plugins)
            }
            None => Err(InstallError::NoProject),
        }
    }

    /// Deletes the folder of a skill from the skills folder, and returns its path. Skills of plugins
    /// belong to their plugin. Blocking.
    ///
    /// # Errors
    /// [`InstallError`]; nothing has changed then.
    pub fn remove_skill(&self, id: &str) -> Result<PathBuf, InstallError> {
        self.tools.watched.as_ref().ok_or(InstallError::NoProject)?.remove(id)
    }

    /// Roles, rules and the default effect.
    pub fn policy(&self) -> &Policy {
        &self.tools.policy
    }

    /// The id of the agent, for [`TurnInfo`](toolcrib_core::TurnInfo), if the project has one.
    pub fn agent_id(&self) -> Option<&Arc<str>> {
        self.agent.id.as_ref()
    }

    /// The declared personalities, in the order of the file. An engine always has one named
    /// `default`.
    pub fn personalities(&self) -> impl ExactSizeIterator<Item = &Personality> {
        self.agent.personalities.iter().map(|declared| &declared.personality)
    }

    /// The own model of a declared personality, if it has one.
    pub fn personality_model(&self, personality: &str) -> Option<&Arc<dyn Model>> {
        let mut all = self.agent.personalities.iter();
        all.find(|declared| &*declared.personality.id == personality)?.model.as_ref()
    }

    /// The model, if the project or the options name one.
    pub fn model(&self) -> Option<&Arc<dyn Model>> {
        self.models.chosen.model.as_ref()
    }

    /// The vendor, if the [`model`](Self::model) is named by it alone, and is therefore the vendor's
    /// default. A server other than the vendor's may lack that model.
    pub fn vendor_alone(&self) -> Option<Vendor> {
        self.models.chosen.vendor_alone
    }

    /// The alternative models for rules, in order; none if the options name a model.
    pub fn fallback_models(&self) -> &[Arc<dyn Model>] {
        &self.models.chosen.fallback_models
    }

    /// The rules for failures, in order.
    pub fn reliability(&self) -> &[ReliabilityRule] {
        self.models.chosen.reliability.rules()
    }

    /// The models with a project name, in the order of the file.
    pub fn models(&self) -> &[DeclaredModel] {
        &self.models.declared
    }

    /// The system text, if there is one.
    pub fn system(&self) -> Option<&Arc<str>> {
        self.agent.system.as_ref()
    }

    /// The limits of a batch of calls; the engine's defaults unless the file sets them.
    pub fn limits(&self) -> Limits {
        self.tools.limits
    }

    /// The limits of a turn's calls and cost; the agent's defaults unless the file sets them.
    pub fn turn_limits(&self) -> &TurnLimits {
        &self.agent.turn_limits
    }

    /// The budgets of all runs. A run of the [agent](Self::agent_builder) needs a store of usage if
    /// there is one, such as that of [`sessions`](Self::sessions).
    pub fn budget(&self) -> &Budget {
        &self.agent.budget
    }

    /// The prices of models. The project's own models have theirs.
    pub fn prices(&self) -> &Prices {
        &self.models.prices
    }

    /// The limit of iterations of a turn, after which it is wrapped up, if the file sets it.
    pub fn max_iterations(&self) -> Option<u32> {
        self.agent.max_iterations
    }

    /// The timeout of a turn, if the file sets it.
    pub fn turn_timeout(&self) -> Option<Duration> {
        self.agent.turn_timeout
    }

    /// The MCP servers: the project's own in the order of its file, those of `mcpServers` files, then
    /// those of plugins.
    pub fn mcp_servers(&self) -> &[McpServer] {
        &self.remote.mcp
    }

    /// The file with the stderr of a server that is a program, written while calls are run. It may
    /// not exist.
    pub fn server_log(&self, server: &McpServer) -> PathBuf {
        path_of(self.state(), &server.log)
    }

    /// The hubs, in the order of the file, then those of plugins.
    pub fn hubs(&self) -> &[DeclaredHub] {
        &self.remote.hubs
    }

    /// The store for results that are too large for a model; `None` if the project does not enable
    /// it.
    pub fn artifacts(&self) -> Option<&Artifacts> {
        self.state.artifacts.as_ref()
    }

    /// The sessions: stored runs that can be continued.
    pub fn sessions(&self) -> &Sessions {
        &self.state.sessions
    }

    /// The approval of calls that a rule asks about.
    pub fn approvals(&self) -> &ProjectApprovals {
        &self.state.approvals
    }

    /// The pinned definitions of its remote sources.
    pub fn lock(&self) -> &Lock {
        &self.remote.lock
    }

    /// Whether artifacts of a named conversation remain after this process has ended.
    pub fn keeps_artifacts(&self) -> bool {
        self.state.keeps_artifacts
    }

    /// Why no server is started or connected, if so: it is not trusted, or the options forbid it.
    /// Ends a sentence about a server.
    pub fn held(&self) -> Option<&str> {
        self.remote.trust.reason.as_deref()
    }

    /// Shuts down all MCP servers and waits until their processes and tasks have ended. From then
    /// on their tools return `not_available`, in each engine of this project.
    pub async fn close(&self) {
        let clients = self.remote.mcp.iter().filter_map(|server| server.client().ok());
        join_all(clients.map(McpClient::close)).await;
    }

    /// The declared tokens of a gateway over HTTP.
    pub fn serve_tokens(&self) -> &[ServeToken] {
        &self.serving.tokens
    }

    /// The settings of a gateway besides its tokens.
    pub fn serving(&self) -> &ServeSettings {
        &self.serving.settings
    }

    /// The files by which the project is declared: `toolcrib.toml`, `mcpServers` files, the files of
    /// plugins, and the certificate of a gateway. A gateway loads the project again when one of them
    /// changes. Skills are watched separately.
    pub fn watched_files(&self) -> &[PathBuf] {
        &self.serving.watched_files
    }

    /// The value of a declared token, read now.
    ///
    /// # Errors
    /// [`SecretError`] if its secret is not available.
    pub fn token(&self, token: &ServeToken) -> Result<Secret, SecretError> {
        self.remote.secrets.get(&token.secret)
    }

    /// The generated token of a gateway over HTTP without declared ones: stored in the state
    /// folder, in a file that only its owner can read, and created if it is missing. Blocking.
    ///
    /// # Errors
    /// [`TokenError`], also for a file that others can read.
    pub fn token_file(&self) -> Result<TokenFile, TokenError> {
        let cannot = |source| TokenError::Io { path: self.state().to_owned(), source };
        self.state.folder.make().map_err(cannot)?;
        token_file(self.state())
    }

    /// The declared databases in files, in the order of the project file.
    pub fn databases(&self) -> &[Database] {
        &self.state.databases
    }

    /// The declared databases on servers, in the order of the project file.
    pub fn database_servers(&self) -> &[PostgresDatabase] {
        &self.state.database_servers
    }

    /// The declared folders, in the order of the project file. A program adds them to its
    /// `HostCapabilities`, so that its own tools may declare them.
    pub fn files(&self) -> &[Files] {
        &self.state.files
    }

    /// Warnings about programs that others may change: those that fetch packages without a fixed
    /// version, and files outside the project that another user may write. Each has its position.
    /// They are separate from [`warnings`](Self::warnings), because they matter for the decision to
    /// trust the project, not for each call. None if the load had no
    /// [consent](crate::user::options::LoadOptions::consent) to query.
    pub fn program_warnings(&self) -> &Diagnostics {
        &self.remote.trust.warnings
    }

    /// The store of the project for what outlives a process, such as the restrictions of the callers of
    /// a gateway; `None` if the project stores no sessions.
    pub fn key_values(&self) -> Option<Arc<dyn KvStore>> {
        self.state.sessions.are_stored().then(|| Arc::new(self.state.own.clone()) as _)
    }

    /// The secret that the replicas of a gateway share, besides the [store](Self::sessions): `[sessions]` names
    /// a database, and `[approvals]` a key. `None` without one of them.
    pub fn shared_secret(&self) -> Option<&Secret> {
        let secret = self.state.approvals.shared_secret();
        secret.filter(|_| self.state.sessions.are_on_server())
    }

    /// Which tools are deferred.
    pub fn deferral(&self) -> &Deferral {
        &self.tools.deferral
    }

    /// Probable mistakes in a project that loads.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// An engine builder with the project's tools, MCP servers, hubs, skills, plugins, policy,
    /// secrets and limits. The values of its secrets are redacted from the start.
    pub fn engine_builder(&self) -> EngineBuilder {
        let redactor = self.redactor();
        let engine = Engine::builder()
            .tools(of(&self.tools.tools, |tool| tool.plugin().is_none()))
            .policy(self.tools.policy.clone())
            .defer(self.tools.deferral.clone())
            .kv(self.state.own.clone())
            .secrets(self.remote.secrets.clone())
            .redactor(redactor)
            .limits(self.tools.limits)
            .convert_text_arguments(self.tools.convert_text_arguments);
        let engine = match &self.tools.watched {
            Some(skills) => engine.skill_source(skills.clone()),
            None => engine.skills(self.tools.skills.clone()),
        };
        let engine = match &self.state.artifacts {
            Some(artifacts) => engine.artifacts(artifacts.clone()),
            None => engine,
        };
        let engine = self.models.chosen.reliability.add_to(engine);
        let engine = self.tools.hooks.iter().cloned().fold(engine, EngineBuilder::middleware);
        let engine = self.personalities().cloned().fold(engine, EngineBuilder::personality);
        let of_servers =
            sources(&self.remote.mcp.iter().filter(|server| server.plugin().is_none()));
        let of_hubs = sources(&self.remote.hubs.iter().filter(|hub| hub.plugin().is_none()));
        let engine = of_servers.into_iter().chain(of_hubs).fold(engine, |engine, source| {
            let EngineSource { provider, alternatives, on_failure } = source;
            engine.provider_with_alternatives(provider, alternatives, on_failure)
        });
        self.tools.plugins.iter().cloned().fold(engine, EngineBuilder::plugin)
    }

    /// A redactor for the project's secrets: those of the process, the declared ones, and those in
    /// declarations of MCP servers.
    pub fn redactor(&self) -> Redactor {
        self.remote.redactor.clone()
    }

    /// An agent builder over such an engine, with the project's model, system text and limits. It
    /// cannot be built without a [`model`](Self::model).
    pub fn agent_builder(&self) -> AgentBuilder {
        let mut agent = Agent::builder().engine(|_| self.engine_builder());
        if let Some(model) = &self.models.chosen.model {
            agent = agent.model(Arc::clone(model));
        }
        for model in &self.models.chosen.fallback_models {
            agent = agent.fallback_model(Arc::clone(model));
        }
        for DeclaredPersonality { personality, model, .. } in &self.agent.personalities {
            if let Some(model) = model {
                agent = agent.personality_model(Arc::clone(&personality.id), Arc::clone(model));
            }
        }
        if let Some(system) = &self.agent.system {
            agent = agent.system(Arc::clone(system));
        }
        if let Some(iterations) = self.agent.max_iterations {
            agent = agent.max_iterations(iterations);
        }
        if let Some(timeout) = self.agent.turn_timeout {
            agent = agent.turn_timeout(timeout);
        }
        agent.turn_limits(self.agent.turn_limits.clone()).budget(self.agent.budget.clone())
    }
}

toolcrib_core::__internal::debug_fields!(
    Project,
    project,
    name = project.name,
    root = project.root,
    state = project.state(),
    ..
);

/// The items of a list that belong to one part of the project.
fn of<T: Clone>(all: &[T], is_of_part: impl Fn(&&T) -> bool) -> Vec<T> {
    all.iter().filter(is_of_part).cloned().collect()
}

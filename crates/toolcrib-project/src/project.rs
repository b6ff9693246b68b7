//! A project as it is used: loaded once, then everything in it is known to be sound.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use toolcrib_agent::{Agent, AgentBuilder};
use toolcrib_artifacts::Artifacts;
use toolcrib_config::{Diagnostic, Diagnostics, Document, Problems, Spot};
use toolcrib_core::{CancellationToken, Model, Policy, ReliabilityRule, Secret, SecretError, Tool};
use toolcrib_engine::{Engine, EngineBuilder, Limits, Personality, Redactor, Skills};
use toolcrib_mcp::McpClient;
use toolcrib_scope::database::Database;

use crate::{
    PROJECT_FILE,
    build::{
        Databases, DeclaredHub, DeclaredModel, DeclaredPersonality, HubSources, McpFiles,
        McpSources, ModelSources, NamedModel, Names, Part, PersonalitySources, Reliability,
        WithAlternatives, build_artifacts, build_models, build_policy, build_reliability,
        build_secrets, build_skills, build_tokens, build_tools, check_alternatives, check_plugins,
        for_all_skills, offered_with_secrets, report_captured_names, report_duplicate_tools,
        report_taken_names, report_unreachable_hosts, report_unreachable_hubs, sources,
    },
    config::{LimitsSection, ProjectFile},
    error::LoadError,
    mcp::McpServer,
    plugin::FolderPlugin,
    root::{FileError, MAX_TEXT, Root},
    secrets::EnvironmentSecrets,
    serve::{ServeToken, TokenError, TokenFile, token_file},
    skills::{InstallError, InstalledSkill, SkillFolders, WatchedSkills},
    state::StateFolder,
    system::system_text,
};

/// How a project is loaded.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The state folder. Default: `.toolcrib` in the project.
    pub state: Option<PathBuf>,
    /// Whether calls will be run. Default: they will not.
    pub mode: Mode,
    /// A model in place of the project's own, in the same notation. A script given here may lie
    /// outside the project; a relative path starts at the project's folder.
    pub model: Option<String>,
    /// Where that model is, in place of the vendor's own base URL. No key of the environment goes
    /// there.
    pub base_url: Option<String>,
    /// `mcpServers` files whose servers stand beside the project's own. They may lie outside the
    /// project, and their programs run in this process's working folder. One that cannot be listed
    /// is left out, with a notice, unless the project has a `[mcp.NAME]` for it that says otherwise.
    /// One that cannot be used as it is declared fails so too, and is a warning.
    pub imports: Vec<PathBuf>,
    /// Whether what programs of imported files start may outlive them, where the project has no
    /// `[mcp.NAME]` that says it. Default: no; then they are not started where that cannot be
    /// prevented.
    pub allow_stray_children: bool,
    /// The ids of plugins that are added to the engine in code, so that personalities may name them.
    pub plugins: Vec<Arc<str>>,
    /// Ends the wait for another process that makes the same database.
    pub cancel: CancellationToken,
}

/// What a project is loaded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// To look at it. Nothing is written, and a call to a tool over a database is refused.
    #[default]
    Inspect,
    /// To run calls. The state folder and declared databases that are missing are made.
    Run {
        /// Makes the declared databases anew from their seeds: none while one of them is in use.
        fresh: bool,
    },
}

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
    plugins: Vec<FolderPlugin>,
    tokens: Vec<ServeToken>,
    databases: Vec<Database>,
    warnings: Diagnostics,
}

impl Project {
    /// Loads the project in a folder. Blocks: it reads files and may make databases.
    ///
    /// In [`Mode::Run`] nothing is made as long as something is wrong in the project's files,
    /// except that databases are made before the statements over them are checked, one after the
    /// other, so that a seed that fails leaves those before it made.
    ///
    /// # Errors
    /// [`LoadError`]; all that is wrong in the project's files comes at once.
    pub fn load(dir: &Path, options: &LoadOptions) -> Result<Self, LoadError> {
        let root = Root::new(dir).map_err(|_| LoadError::NoFolder { dir: dir.to_owned() })?;
        if !root.path().is_dir() {
            return Err(LoadError::NotAFolder { path: dir.to_owned() });
        }
        let problems = Problems::new(PROJECT_FILE);
        let text = match root.text(PROJECT_FILE, MAX_TEXT) {
            Ok(text) => text,
            Err(FileError::NotFound) => return Err(LoadError::NoProject { dir: dir.to_owned() }),
            Err(error) => {
                let at = Spot::start_of(PROJECT_FILE);
                problems.push(Diagnostic::error(&at, format!("this {error}")));
                return Err(LoadError::Diagnostics(problems.into_diagnostics()));
            }
        };
        let document = Document::new(PROJECT_FILE, text);
        match ProjectFile::read(&document, &problems) {
            Some(file) => {
                let chosen = options.state.as_deref();
                let state = StateFolder::new(root.path(), chosen)
                    .map_err(cannot_make(chosen.unwrap_or(root.path())))?;
                let start = Spot::start_of(PROJECT_FILE);
                let named = file.skills.folder.as_ref();
                let folders = SkillFolders::read(&root, named, &start, &problems);
                Self::build(file, folders, &root, state, problems, options)
            }
            None => Err(LoadError::Diagnostics(problems.into_diagnostics())),
        }
    }

    /// A project without a folder: nothing but the servers of the
    /// [`imports`](LoadOptions::imports). Its root is this process's working folder, of which
    /// nothing is read; unless the options name one, its state folder is `toolcrib` among the user's
    /// states, `$XDG_STATE_HOME` or `~/.local/state`. Blocks, as [`load`](Self::load) does.
    ///
    /// # Errors
    /// [`LoadError`]; all that is wrong in the files comes at once.
    pub fn of_imports(options: &LoadOptions) -> Result<Self, LoadError> {
        let here = Path::new(".");
        let root = Root::new(here).map_err(|_| LoadError::NoFolder { dir: here.to_owned() })?;
        let state = match options.state.as_deref() {
            Some(chosen) => {
                StateFolder::new(root.path(), Some(chosen)).map_err(cannot_make(chosen))?
            }
            None => StateFolder::of_user().ok_or(LoadError::NoState)?,
        };
        let first = options.imports.first().map(|path| path.to_string_lossy());
        let main = first.as_deref().unwrap_or(PROJECT_FILE);
        let file = ProjectFile { name: Some(main.into()), ..ProjectFile::default() };
        Self::build(file, SkillFolders::default(), &root, state, Problems::new(main), options)
    }

    fn build(
        mut file: ProjectFile,
        skills: SkillFolders,
        root: &Root,
        state: StateFolder,
        problems: Problems,
        options: &LoadOptions,
    ) -> Result<Self, LoadError> {
        let mcp_files = McpFiles::read(&file, root, &options.imports, &problems)?;
        let mut parts = Part::all(&mut file, skills, root, &problems);
        let mut names = Names::of(&file, &parts, &mcp_files);
        check_plugins(&file, &options.plugins, &names, &problems);
        names.plugins.extend(options.plugins.iter().cloned());
        let has_skills = !names.skills.is_empty();
        report_duplicate_tools(&parts, has_skills, file.artifacts.is_some(), &problems);
        report_taken_names(&parts, &mcp_files, &problems);
        report_captured_names(&parts, &problems);
        let rules = &file.reliability.rules;
        parts.iter().for_each(|part| check_alternatives(part, &mcp_files, rules, &problems));
        let policy = build_policy(&file.policy, &names, &problems);
        let skills: Vec<_> =
            parts.iter_mut().map(|part| build_skills(part, &names, &problems)).collect();
        let system = file.agent.system.as_ref();
        let system = system.and_then(|text| system_text(text, root, &problems));
        let secrets = build_secrets(&file, &parts, &names, &problems);
        let tokens = build_tokens(&file.serve, &secrets, &names, &problems);
        let no_files = McpFiles::default();
        let (mut mcp, mut hubs) = (Vec::new(), Vec::new());
        for part in &parts {
            let names = &names.seen_by(part);
            let servers = McpSources {
                sections: &part.declared.mcp,
                files: if part.plugin_id().is_none() { &mcp_files } else { &no_files },
                secrets: &secrets,
                names,
                root: &part.root,
                allow_stray_children: options.allow_stray_children,
                problems: &problems,
            };
            mcp.extend(servers.build());
            let sections = &part.declared.hubs;
            let of_part = HubSources { sections, secrets: &secrets, names, problems: &problems };
            hubs.extend(of_part.build());
        }
        let models = build_models(&file.models, &secrets, &names, &problems);
        let sources = ModelSources { root, names: &names, declared: &models, problems: &problems };
        let model = match (&options.model, &file.agent.model) {
            (Some(name), _) => sources.load_chosen(name, options.base_url.as_deref())?,
            (None, Some(name)) => sources.load(name),
            (None, None) => None,
        };
        let fallback_models = file.agent.fallback_models.iter().map(|name| NamedModel {
            name: Arc::clone(&name.value),
            // Who chose a model wants no other of the project's asked in its place.
            model: if options.model.is_none() { sources.load(name) } else { None },
        });
        let named = file.agent.model.iter().map(|name| NamedModel {
            name: Arc::clone(&name.value),
            model: model.clone().filter(|_| options.model.is_none()),
        });
        let named: Vec<_> = named.chain(fallback_models).collect();
        let reliability = build_reliability(&file.reliability, &named, &names, &problems);
        let fallback_models = named.into_iter().skip(usize::from(file.agent.model.is_some()));
        let fallback_models = fallback_models.filter_map(|named| named.model).collect();
        let own_models = options.model.is_none().then_some(&sources);
        let personalities =
            PersonalitySources { root, names: &names, models: own_models, problems: &problems }
                .build(&file.personalities);

        // What is wrong with the rest is still worth knowing, but not worth making anything.
        let mode = if problems.has_errors() { Mode::Inspect } else { options.mode };
        if mode != Mode::Inspect && !file.databases.is_empty() {
            state.make().map_err(cannot_make(state.path()))?;
        }
        let databases =
            Databases::open(&file.databases, root, &state, mode, &options.cancel, &problems);
        let artifacts = file.artifacts.as_ref();
        let artifacts = artifacts.map(|section| build_artifacts(section, &state));
        let tools = build_tools(&parts, &databases, artifacts.as_ref(), &names, &problems);
        report_unreachable_hosts(&personalities, &tools, &parts, &problems);
        report_unreachable_hubs(&personalities, &parts, &problems);
        let tools = offered_with_secrets(tools, &secrets);
        if problems.has_errors() {
            return Err(LoadError::Diagnostics(problems.into_diagnostics()));
        }
        if options.cancel.is_cancelled() {
            return Err(LoadError::Cancelled);
        }
        let databases = databases.into_usable()?;
        let for_all = for_all_skills(&file.skills);
        let mut all_skills = for_all.clone();
        let (mut watched, mut plugins) = (None, Vec::new());
        for (part, skills) in parts.iter().zip(skills) {
            let skills: Vec<_> = skills.into_iter().map(Arc::new).collect();
            // Two of one name were recorded.
            let with = |all: &Skills| all.with_shared(skills.iter().cloned());
            all_skills = with(&all_skills).unwrap_or(all_skills);
            let loaded = with(&for_all).unwrap_or_default();
            let of_part = WatchedSkills::new(part, names.clone(), loaded);
            match part.plugin_id() {
                None => watched = of_part,
                Some(id) => plugins.push(FolderPlugin {
                    id: Arc::clone(id),
                    tools: of(&tools, |tool| tool.plugin() == Some(id)),
                    mcp: of(&mcp, |server| server.plugin() == Some(id)),
                    hubs: of(&hubs, |hub| hub.plugin() == Some(id)),
                    skills: of_part,
                }),
            }
        }
        Ok(Self {
            name: file.name.unwrap_or_else(|| folder_name(root.path())),
            root: root.path().to_owned(),
            state,
            tools,
            watched,
            skills: all_skills,
            policy,
            personalities,
            model,
            fallback_models,
            reliability,
            models,
            system,
            limits: limits(&file.limits),
            max_iterations: file.agent.max_iterations,
            turn_timeout: file.agent.turn_timeout,
            secrets,
            mcp,
            hubs,
            artifacts,
            artifacts_outlive_it: file.artifacts.is_some_and(|section| !section.in_memory),
            plugins,
            tokens,
            databases,
            warnings: problems.into_diagnostics(),
        })
    }

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

fn cannot_make(state: &Path) -> impl Fn(io::Error) -> LoadError {
    move |source| LoadError::State { path: state.to_owned(), source }
}

fn limits(section: &LimitsSection) -> Limits {
    let default = Limits::default();
    Limits {
        batch_result_chars: section.batch_result_chars.unwrap_or(default.batch_result_chars),
        tool_timeout: section.tool_timeout.unwrap_or(default.tool_timeout),
        ..default
    }
}

fn folder_name(root: &Path) -> Arc<str> {
    root.file_name().map_or_else(|| "project".into(), |name| name.to_string_lossy().into())
}

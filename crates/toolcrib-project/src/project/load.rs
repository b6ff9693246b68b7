//! Loads a project from its files, and reports all errors at once.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_config::{Diagnostic, Document, Problems, Spot};
use toolcrib_core::{Effect, Model};
use toolcrib_engine::{Limits, Redactor, Skill, Skills};
use toolcrib_models::Vendor;

use super::{Project, of, plugin::FolderPlugin};
use crate::{
    LoadOptions, Mode,
    bind::{
        alternatives::check_alternatives,
        mcp_files::McpFiles,
        names::Names,
        part::Part,
        part_names::{
            check_plugins, report_captured_names, report_false_origins, report_taken_names,
        },
        sandbox::SandboxDefaults,
    },
    build::{
        DatabaseSpecs, Databases, DeclaredHub, FolderSpecs, HubSources, McpSources, ModelSources,
        NamedModel, PersonalitySources, Prices, ProjectParts, ProjectStorage, Reliability,
        ThirdParties, build_artifacts, build_hooks, build_models, build_policy, build_reliability,
        build_secrets, build_serving, build_skills, build_tokens, build_tools, for_all_skills,
        keep_usable_tools, mcp_server::McpServer, offered_with_secrets, read_documents,
        read_schemas, refuse_unknown_costs, report_duplicate_tools, report_unreachable_hosts,
        report_unreachable_hubs, serving::ServeSettings, warn_of_unknown_costs,
    },
    error::LoadError,
    file::{LimitsSection, PLUGIN_FILE, PROJECT_FILE, ProjectFile},
    read::{
        root::Root,
        skills::SkillFolders,
        system::system_text,
        text_file::{FileError, MAX_TEXT},
    },
    skills::watched::WatchedSkills,
    trust::held,
    user::{
        approvals::ProjectApprovals, consent::TrustDecision, lock::Lock, own_store::OwnStore,
        private, secrets::ProjectSecrets, sessions::Sessions, state::StateFolder,
    },
};

impl Project {
    /// Loads the project in a folder. Blocking: it reads files and may create databases.
    ///
    /// In [`Mode::Run`] nothing is created while the project's files have errors. One exception:
    /// databases are created before the statements over them are checked, one after the other, so
    /// after a failed seed the earlier databases exist.
    ///
    /// # Errors
    /// [`LoadError`], with all errors of the project's files at once.
    pub fn load(dir: &Path, options: &LoadOptions) -> Result<Self, LoadError> {
        let root = Root::new(dir).map_err(|_| LoadError::NoFolder { dir: dir.to_owned() })?;
        if !root.path().is_dir() {
            return Err(LoadError::NotAFolder { path: dir.to_owned() });
        }
        let problems = Problems::new(PROJECT_FILE);
        let text = match root.text(PROJECT_FILE, MAX_TEXT) {
            Ok(text) => text,
            Err(FileError::NotFound) => {
                return Err(LoadError::NoProject { dir: dir.to_owned() });
            }
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
                state.check().map_err(cannot_make(state.path()))?;
                let start = Spot::start_of(PROJECT_FILE);
                let named = file.skills.folder.as_ref();
                let folders = SkillFolders::read(&root, named, &start, &problems);
                Self::build(file, folders, (&root, true), state, problems, options)
            }
            None => Err(LoadError::Diagnostics(problems.into_diagnostics())),
        }
    }

    /// A project without a folder: only the servers of the [`imports`](LoadOptions::imports). Its
    /// root is this process's working folder, which is not read. Unless the options name one, its
    /// state folder is `toolcrib` in the user's state folder, `$XDG_STATE_HOME` or
    /// `~/.local/state`. Blocking, like [`load`](Self::load).
    ///
    /// # Errors
    /// [`LoadError`], with all errors of the files at once.
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
        state.check().map_err(cannot_make(state.path()))?;
        let file = ProjectFile { name: Some(main.into()), ..ProjectFile::default() };
        let (skills, problems) = (SkillFolders::default(), Problems::new(main));
        Self::build(file, skills, (&root, false), state, problems, options)
    }

    fn build(
        mut file: ProjectFile,
        skills: SkillFolders,
        (root, is_folder): (&Root, bool),
        state: StateFolder,
        problems: Problems,
        options: &LoadOptions,
    ) -> Result<Self, LoadError> {
        let mcp_files = McpFiles::read(&file, root, &options.imports, &problems)?;
        let mut parts = Part::all(&mut file, skills, root, &problems);
        keep_usable_tools(&mut parts, &file.files);
        read_documents(&mut parts, &problems);
        let mut names = Names::of(&file, &parts, &mcp_files);
        check_plugins(&file, &options.plugins, &names, &problems);
        names.plugins.extend(options.plugins.iter().cloned());
        names.sandboxes = SandboxDefaults::new(&file.sandbox, &state);
        let has_skills = !names.skills.is_empty();
        report_duplicate_tools(&parts, has_skills, file.artifacts.is_some(), &problems);
        report_taken_names(&parts, &mcp_files, &problems);
        report_captured_names(&parts, &problems);
        report_false_origins(&parts, &problems);
        let rules = &file.reliability.rules;
        parts.iter().for_each(|part| check_alternatives(part, &mcp_files, rules, &problems));
        let deferral = file.tool_search.deferral(parts.iter().map(|part| &part.declared));
        let policy = build_policy(&file.policy, &names, &problems);
        let skills: Vec<_> =
            parts.iter_mut().map(|part| build_skills(part, &names, &problems)).collect();
        let system = file.agent.system.as_ref();
        let system = system.and_then(|text| system_text(text, root, &problems));
        let secrets = build_secrets(&file, &parts, &names, &problems);
        let serving = build_serving(&file.serve, root.path(), &names, &problems);
        let tokens = build_tokens(&file.serve, &secrets, &names, &problems);
        let redactor = secrets.redactor();
        let lock = lock_of(root, is_folder, options, &redactor);
        let (mut mcp, mut hubs) = remote_sources(
            &parts,
            &mcp_files,
            &names,
            (&secrets, &redactor),
            (options, &lock, &state),
            &problems,
        );
        names.sandboxes.report_uncontained(&problems);
        let models = build_models(&file.models, &secrets, &names, &problems);
        let prices = Prices::read(&file.prices, root, &problems);
        let sources = ModelSources {
            root,
            names: &names,
            declared: &models,
            prices: &prices,
            problems: &problems,
        };
        let ChosenModels { model, vendor_alone, fallback_models, reliability } =
            choose_models(&file, &sources, options, &problems)?;
        let own_models = options.model.is_none().then_some(&sources);
        let personalities =
            PersonalitySources { root, names: &names, models: own_models, problems: &problems }
                .build(&file.personalities, &file.teams);

        let databases = DatabaseSpecs::read(&file.databases, root, &state, &names, &problems);
        let folders = FolderSpecs::read(&file.files, root, &state, &problems);
        read_schemas(&parts);
        // The remaining problems are still reported, but nothing is created.
        let mode = if problems.has_errors() { Mode::Inspect } else { options.mode };
        let runs = matches!(mode, Mode::Run { .. });
        let held = if problems.has_errors() {
            TrustDecision::default()
        } else {
            held(&file, &parts, &mcp_files, (&databases, &folders), root, &state, options)?
        };
        if let Some(reason) = &held.reason {
            mcp.iter_mut().for_each(|server| server.hold(reason));
            hubs.iter_mut().for_each(|hub| hub.hold(reason));
        }
        let artifacts = file.artifacts.as_ref();
        let artifacts = artifacts.map(|section| build_artifacts(section, &state));
        let writes_files = folders.has_writable();
        let folders = folders.open(mode, &held, (root, &parts, &state), &problems);
        let sessions = Sessions::new(&file.sessions, &state);
        let own = ProjectStorage::open(mode, &parts, &state, OwnStore::new(&sessions), &problems);
        let hooks = match parts.first() {
            Some(own) => build_hooks(&file.hooks, own, &names, held.reason.as_ref(), &problems),
            None => Vec::new(),
        };
        let tools_and_approvals = |databases: &Databases, problems: &Problems| {
            let used = ProjectParts::new(databases, &folders, &own, &secrets);
            let third_parties =
                ThirdParties { redactor: &redactor, lock: &lock, is_held: held.reason.is_some() };
            let tools =
                build_tools(&parts, &used, artifacts.as_ref(), &names, third_parties, problems);
            report_unreachable_hosts(&personalities, &tools, &parts, problems);
            report_unreachable_hubs(&personalities, &parts, problems);
            names.sandboxes.report_uncontained(problems);
            let tools = offered_with_secrets(tools, &secrets);
            let asks = policy.rules.iter().any(|rule| rule.effect == Effect::Ask)
                || tools.iter().any(|tool| tool.asks_when_tainted());
            let (weak, declared) = (names.sandboxes.weak_programs(), folders.paths());
            let reach = (&*weak, &*declared);
            let (section, rules) = (&file.approvals, &file.policy);
            let approvals = ProjectApprovals::new(
                section,
                rules,
                asks,
                &sessions,
                root.path(),
                reach,
                problems,
            );
            (tools, approvals)
        };
        let of_personalities = personalities.iter().filter_map(|one| one.model.as_ref());
        let all_models = model.iter().chain(&fallback_models).chain(of_personalities).collect();
        check_costs(&file, &parts, all_models, &problems);
        if mode == (Mode::Run { fresh: true }) && databases.has_seeded() {
            // Databases are not replaced for a project that would not load afterward.
            let trial = Problems::new(PROJECT_FILE);
            let previewed = databases.open(Mode::Preview, &held, &secrets, &options.cancel, &trial);
            tools_and_approvals(&previewed, &trial);
            if options.cancel.is_cancelled() {
                return Err(LoadError::Cancelled);
            }
            if trial.has_errors() {
                problems.merge(trial.into_diagnostics());
            }
            if problems.has_errors() {
                return Err(LoadError::Diagnostics(problems.into_diagnostics()));
            }
            let files = databases.files();
            let consent = options.consent.as_ref().filter(|_| !files.is_empty());
            if consent.is_some_and(|consent| !consent.replace(&files)) {
                return Err(LoadError::NotReplaced);
            }
        }
        if runs && (databases.has_seeded() || writes_files) {
            state.make().map_err(cannot_make(state.path()))?;
        }
        let databases = databases.open(mode, &held, &secrets, &options.cancel, &problems);
        let (tools, approvals) = tools_and_approvals(&databases, &problems);
        root.reads().close();
        if problems.has_errors() {
            return Err(LoadError::Diagnostics(problems.into_diagnostics()));
        }
        if options.cancel.is_cancelled() {
            return Err(LoadError::Cancelled);
        }
        let (databases, database_servers) = databases.into_usable()?;
        let GatheredSkills { all, watched, of_plugins } =
            gather_skills(&for_all_skills(&file.skills), &parts, skills, &names);
        let plugins = of_plugins.into_iter().map(|(id, skills)| FolderPlugin {
            tools: of(&tools, |tool| tool.plugin() == Some(&id)),
            mcp: of(&mcp, |server| server.plugin() == Some(&id)),
            hubs: of(&hubs, |hub| hub.plugin() == Some(&id)),
            skills,
            id,
        });
        let plugins = plugins.collect();
        let watched_files = watched_files(&file, &parts, (root, is_folder), (options, &serving));
        Ok(Self {
            name: file.name.unwrap_or_else(|| folder_name(root.path())),
            root: root.path().to_owned(),
            state,
            tools,
            watched,
            skills: all,
            policy,
            hooks,
            deferral,
            personalities,
            model,
            vendor_alone,
            fallback_models,
            reliability,
            models,
            system,
            agent_id: file.agent.id.clone(),
            limits: limits(&file.limits),
            convert_text_arguments: file.convert_text_arguments.unwrap_or(true),
            turn_limits: file.limits.turn.clone(),
            budget: file.budget.budget.clone(),
            prices,
            max_iterations: file.agent.max_iterations,
            turn_timeout: file.agent.turn_timeout,
            secrets,
            redactor,
            mcp,
            hubs,
            artifacts,
            sessions,
            own: own.store,
            approvals,
            lock,
            keeps_artifacts: file.artifacts.as_ref().is_some_and(|section| !section.in_memory),
            held,
            plugins,
            tokens,
            watched_files,
            serving,
            databases,
            database_servers,
            files: folders.into_usable(),
            warnings: problems.into_diagnostics(),
        })
    }
}

/// Reports limits in money for models without known prices.
fn check_costs(
    file: &ProjectFile,
    parts: &[Part],
    models: Vec<&Arc<dyn Model>>,
    problems: &Problems,
) {
    let of_tasks = Part::tools(parts).filter_map(|tool| tool.kind.as_ref()?.cost_at());
    let money = file.limits.cost_at.iter().chain(&file.budget.money).chain(of_tasks);
    refuse_unknown_costs(money, &models, problems);
    warn_of_unknown_costs(&file.reliability, models, problems);
}

/// The files that declare the project.
fn watched_files(
    file: &ProjectFile,
    parts: &[Part],
    (root, is_folder): (&Root, bool),
    (options, serving): (&LoadOptions, &ServeSettings),
) -> Vec<PathBuf> {
    let own = is_folder.then(|| root.path().join(PROJECT_FILE));
    let of_files = file.mcp_files.iter().map(|name| root.path().join(&*name.value));
    let imports = options.imports.iter().filter_map(|path| std::path::absolute(path).ok());
    let plugins = parts.iter().filter(|part| part.plugin_id().is_some());
    let plugins = plugins.map(|part| part.root.path().join(PLUGIN_FILE));
    let tls = serving.tls.iter().flat_map(|tls| [tls.certificate.clone(), tls.key.clone()]);
    own.into_iter().chain(of_files).chain(imports).chain(plugins).chain(tls).collect()
}

/// The pinned definitions: of a project's folder, or of the first imported file without one.
fn lock_of(root: &Root, is_folder: bool, options: &LoadOptions, redactor: &Redactor) -> Lock {
    let import = options.imports.first().filter(|_| !is_folder);
    let import = import.map(|file| file.canonicalize().unwrap_or_else(|_| file.clone()));
    let subject = import.as_deref().unwrap_or(root.path());
    let shared = is_folder.then(|| root.path().to_owned());
    Lock::new(subject, shared, private::config_of_user(), options, redactor)
}

/// The MCP servers and the hubs, of the project and of its plugins.
fn remote_sources(
    parts: &[Part],
    files: &McpFiles,
    names: &Names,
    (secrets, redactor): (&ProjectSecrets, &Redactor),
    (options, lock, state): (&LoadOptions, &Lock, &StateFolder),
    problems: &Problems,
) -> (Vec<McpServer>, Vec<DeclaredHub>) {
    let no_files = McpFiles::default();
    let logs = matches!(options.mode, Mode::Run { .. }).then_some(state);
    let (mut mcp, mut hubs) = (Vec::new(), Vec::new());
    for part in parts {
        let names = &names.seen_by(part);
        let servers = McpSources {
            sections: &part.declared.mcp,
            files: if part.plugin_id().is_none() { files } else { &no_files },
            secrets,
            names,
            root: &part.root,
            allow_stray_children: options.allow_stray_children,
            trusted: &options.trusted,
            lint_allow: &options.lint_allow,
            flags: &options.flags,
            lock,
            logs,
            redactor,
            problems,
        };
        mcp.extend(servers.build());
        let sections = &part.declared.hubs;
        hubs.extend(HubSources { sections, secrets, names, lock, redactor, problems }.build());
    }
    (mcp, hubs)
}

/// The models, and the rules for their failures.
struct ChosenModels {
    model: Option<Arc<dyn Model>>,
    vendor_alone: Option<Vendor>,
    fallback_models: Vec<Arc<dyn Model>>,
    reliability: Reliability,
}

/// An explicit model disables the project's fallback models.
fn choose_models(
    file: &ProjectFile,
    sources: &ModelSources<'_>,
    options: &LoadOptions,
    problems: &Problems,
) -> Result<ChosenModels, LoadError> {
    let model = match (&options.model, &file.agent.model) {
        (Some(name), _) => sources.load_chosen(name, options.base_url.as_deref())?,
        (None, Some(name)) => sources.load(name),
        (None, None) => None,
    };
    let named = options.model.as_deref().or(file.agent.model.as_ref().map(|name| &*name.value));
    let vendor_alone =
        named.filter(|_| options.base_url.is_none()).and_then(|name| sources.vendor_alone(name));
    let is_own = options.model.is_none();
    let first = file.agent.model.iter().map(|name| NamedModel {
        name: Arc::clone(&name.value),
        model: model.clone().filter(|_| is_own),
    });
    let others = file.agent.fallback_models.iter().map(|name| NamedModel {
        name: Arc::clone(&name.value),
        model: if is_own { sources.load(name) } else { None },
    });
    let named: Vec<_> = first.chain(others).collect();
    let reliability = build_reliability(&file.reliability, &named, sources.names, problems);
    let others = named.into_iter().skip(usize::from(file.agent.model.is_some()));
    let fallback_models = others.filter_map(|named| named.model).collect();
    Ok(ChosenModels { model, vendor_alone, fallback_models, reliability })
}

/// The skills at load time, and the folders to search for them later.
struct GatheredSkills {
    all: Skills,
    watched: Option<WatchedSkills>,
    of_plugins: Vec<(Arc<str>, Option<WatchedSkills>)>,
}

fn gather_skills(
    for_all: &Skills,
    parts: &[Part],
    skills: Vec<Vec<Skill>>,
    names: &Names,
) -> GatheredSkills {
    let mut gathered =
        GatheredSkills { all: for_all.clone(), watched: None, of_plugins: Vec::new() };
    for (part, skills) in parts.iter().zip(skills) {
        let skills: Vec<_> = skills.into_iter().map(Arc::new).collect();
        // Duplicate names were recorded.
        let with = |all: &Skills| all.with_shared(skills.iter().cloned());
        gathered.all = with(&gathered.all).unwrap_or(gathered.all);
        let watched = WatchedSkills::new(part, names.clone(), with(for_all).unwrap_or_default());
        match part.plugin_id() {
            None => gathered.watched = watched,
            Some(id) => gathered.of_plugins.push((Arc::clone(id), watched)),
        }
    }
    gathered
}

fn cannot_make(state: &Path) -> impl Fn(io::Error) -> LoadError {
    move |source| LoadError::State { path: state.to_owned(), source }
}

fn limits(section: &LimitsSection) -> Limits {
    let default = Limits::default();
    Limits {
        batch_result_chars: section.batch_result_chars.unwrap_or(default.batch_result_chars),
        tool_timeout: section.tool_timeout.unwrap_or(default.tool_timeout),
        idle_timeout: section.idle_timeout,
        batch_timeout: section.batch_timeout,
        ..default
    }
}

fn folder_name(root: &Path) -> Arc<str> {
    root.file_name().map_or_else(|| "project".into(), |name| name.to_string_lossy().into())
}

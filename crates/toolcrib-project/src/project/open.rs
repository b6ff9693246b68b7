//! The last phase of loading opens the databases, folders and stores of the plan.

use std::{path::Path, sync::Arc};

use toolcrib_artifacts::Artifacts;
use toolcrib_config::{Diagnostics, Problems};
use toolcrib_core::{Effect, Tool};
use toolcrib_engine::{Limits, Skills};

use super::{
    Project,
    bound::Bound,
    declared::{Declared, cannot_make},
    of,
    parts::{ProjectAgent, ProjectRemote, ProjectState, ProjectTools},
    plan::{OFFLINE, ProjectPlan},
    plugin::FolderPlugin,
};
use crate::{
    build::{
        Databases, Folders, ProjectParts, ProjectStorage, ThirdParties, build_artifacts,
        build_hooks, build_tools, for_all_skills, hook::Hook, offered_with_secrets,
        report_unreachable_hosts, report_unreachable_hubs,
    },
    error::LoadError,
    file::{LimitsSection, PROJECT_FILE},
    skills::watched::WatchedSkills,
    user::{
        approvals::ProjectApprovals, options::Mode, own_store::OwnStore, sessions::Sessions,
        trust::consent::TrustDecision,
    },
};

/// A plan while it is carried out, in a mode.
struct Opening<'a> {
    plan: &'a ProjectPlan,
    trust: &'a TrustDecision,
    mode: Mode,
    problems: &'a Problems,
    artifacts: Option<Artifacts>,
    folders: Folders,
    sessions: Sessions,
    storage: ProjectStorage,
}

/// The opened parts of a project.
struct Opened {
    tools: Vec<Tool>,
    hooks: Vec<Hook>,
    state: ProjectState,
}

impl ProjectPlan {
    /// The project with its databases as a run with `fresh` would create them, in memory, and this
    /// plan, to be opened afterward: for evaluating an action before databases are replaced. No
    /// program is started, and no connection opened. Blocking.
    ///
    /// # Errors
    /// [`LoadError`], with all problems of the project's files at once.
    pub fn preview(mut self) -> Result<(Project, Self), LoadError> {
        let trust = self.trust()?;
        let reason = trust.reason.or_else(|| Some(OFFLINE.into()));
        let trust = TrustDecision { reason, ..trust };
        match self.tried(&trust)? {
            Some(opened) => Ok((self.project(trust, opened), self)),
            None => Err(self.into_error()),
        }
    }

    /// Opens what was planned, as far as the user and the mode permit it. Blocking.
    ///
    /// # Errors
    /// [`LoadError`], with all problems of the project's files at once.
    pub fn open(mut self) -> Result<Project, LoadError> {
        let trust = self.trust()?;
        if self.replaces() {
            // A project that would not load afterward must not lose its databases. Servers are connected to,
            // which a preview does not do.
            if self.tried(&trust)?.is_none() {
                return Err(self.into_error());
            }
            self.consent_to_replacing()?;
        }
        let Declared { options, problems, .. } = &self.bound.declared;
        match Opening::new(&self, &trust, options.mode, problems).finish()? {
            Some(opened) => {
                let project = self.project(trust, opened);
                self.bound.declared.root.reads().close();
                let warnings = self.bound.declared.problems.into_diagnostics();
                Ok(Project { warnings, ..project })
            }
            None => Err(self.into_error()),
        }
    }

    /// Opens the plan with new databases in memory. `None` if the project has errors, which are recorded; its
    /// warnings are not, because they are not those of the opened project.
    fn tried(&self, trust: &TrustDecision) -> Result<Option<Opened>, LoadError> {
        let trial = Problems::new(PROJECT_FILE);
        let opened = Opening::new(self, trust, Mode::Preview, &trial).finish()?;
        if opened.is_none() {
            self.bound.declared.problems.merge(trial.into_diagnostics());
        }
        Ok(opened)
    }

    /// The user's decision on the project. Its question is asked once.
    fn trust(&mut self) -> Result<TrustDecision, LoadError> {
        let trust = self.trust.take().map_or_else(|| self.decide(), Ok)?;
        Ok(self.trust.insert(trust).clone())
    }

    /// Whether databases are replaced by new ones; none is while the files have errors.
    fn replaces(&self) -> bool {
        let Declared { options, problems, .. } = &self.bound.declared;
        let is_fresh = options.mode == Mode::Run { fresh: true };
        is_fresh && self.databases.has_seeded() && !problems.has_errors()
    }

    fn consent_to_replacing(&self) -> Result<(), LoadError> {
        let files = self.databases.files();
        let consent = &self.bound.declared.options.consent;
        let consent = consent.as_ref().filter(|_| !files.is_empty());
        match consent.is_none_or(|consent| consent.replace(&files)) {
            true => Ok(()),
            false => Err(LoadError::NotReplaced),
        }
    }

    fn into_error(self) -> LoadError {
        LoadError::Diagnostics(self.bound.declared.problems.into_diagnostics())
    }

    /// The opened project, without warnings.
    fn project(&self, trust: TrustDecision, opened: Opened) -> Project {
        let Self { bound, redactor, lock, mcp, hubs, models, personalities, .. } = self;
        let (mut mcp, mut hubs) = (mcp.clone(), hubs.clone());
        if let Some(reason) = &trust.reason {
            mcp.iter_mut().for_each(|server| server.hold(reason));
            hubs.iter_mut().for_each(|hub| hub.hold(reason));
        }
        let GatheredSkills { all, watched, of_plugins } = gather_skills(bound);
        let Bound { declared, policy, deferral, system, secrets, serving, .. } = bound;
        let Declared { root, file, .. } = declared;
        let tools = opened.tools;
        let plugins = of_plugins.into_iter().map(|(id, skills)| FolderPlugin {
            tools: of(&tools, |tool| tool.plugin() == Some(&id)),
            mcp: of(&mcp, |server| server.plugin() == Some(&id)),
            hubs: of(&hubs, |hub| hub.plugin() == Some(&id)),
            skills,
            id,
        });
        let plugins = plugins.collect();
        Project {
            name: file.name.clone().unwrap_or_else(|| folder_name(root.path())),
            root: root.path().to_owned(),
            tools: ProjectTools {
                tools,
                skills: all,
                watched,
                plugins,
                policy: policy.clone(),
                hooks: opened.hooks,
                deferral: deferral.clone(),
                limits: limits(&file.limits),
                convert_text_arguments: file.convert_text_arguments.unwrap_or(true),
            },
            agent: ProjectAgent {
                id: file.agent.id.clone(),
                system: system.clone(),
                personalities: personalities.clone(),
                max_iterations: file.agent.max_iterations,
                turn_timeout: file.agent.turn_timeout,
                turn_limits: file.limits.turn.clone(),
                budget: file.budget.budget.clone(),
            },
            models: models.clone(),
            remote: ProjectRemote {
                mcp,
                hubs,
                lock: lock.clone(),
                trust,
                secrets: secrets.clone(),
                redactor: redactor.clone(),
            },
            state: opened.state,
            serving: serving.clone(),
            warnings: Diagnostics::default(),
        }
    }
}

impl<'a> Opening<'a> {
    /// Opens the folders and the stores. Files with errors are only inspected: the remaining problems
    /// are still reported, but nothing is created.
    fn new(
        plan: &'a ProjectPlan,
        trust: &'a TrustDecision,
        mode: Mode,
        problems: &'a Problems,
    ) -> Self {
        let Declared { options, root, state, file, parts, .. } = &plan.bound.declared;
        let has_errors = plan.bound.declared.problems.has_errors();
        let mode = if has_errors { Mode::Inspect } else { mode };
        // A command that only inspects reads the store too.
        let (given, held) = (options.store.as_deref(), trust.untrusted.as_ref());
        let sessions = Sessions::new(&file.sessions, state, given, &plan.bound.secrets, held);
        plan.tokens.is_in(&sessions);
        let artifacts = file.artifacts.as_ref();
        let artifacts = artifacts.map(|section| build_artifacts(section, state, &sessions));
        let folders = plan.folders.open(mode, trust, (root, parts, state), problems);
        let storage = ProjectStorage::open(mode, parts, state, OwnStore::new(&sessions), problems);
        Self { plan, trust, mode, problems, artifacts, folders, sessions, storage }
    }

    /// Opens the databases and builds what uses them. `None` if the project has errors, which are
    /// recorded.
    fn finish(self) -> Result<Option<Opened>, LoadError> {
        let ProjectPlan { bound, databases, .. } = self.plan;
        let Declared { options, state, file, parts, .. } = &bound.declared;
        let problems = self.problems;
        let held = self.trust.reason.as_ref();
        let hooks =
            parts.first().map(|own| build_hooks(&file.hooks, own, &bound.names, held, problems));
        let creates = databases.has_seeded() || self.plan.folders.has_writable();
        if matches!(self.mode, Mode::Run { .. }) && creates {
            state.make().map_err(cannot_make(state.path()))?;
        }
        let (cancel, secrets) = (&options.cancel, &bound.secrets);
        let databases = databases.open(self.mode, self.trust, secrets, cancel, problems);
        let (tools, approvals) = self.tools(&databases);
        if problems.has_errors() || bound.declared.problems.has_errors() {
            return Ok(None);
        }
        if cancel.is_cancelled() {
            return Err(LoadError::Cancelled);
        }
        let (databases, database_servers) = databases.into_usable()?;
        let state = ProjectState {
            folder: state.clone(),
            sessions: self.sessions,
            own: self.storage.store,
            approvals,
            artifacts: self.artifacts,
            keeps_artifacts: file.artifacts.as_ref().is_some_and(|section| !section.in_memory),
            databases,
            database_servers,
            files: self.folders.into_usable(),
        };
        Ok(Some(Opened { tools, hooks: hooks.unwrap_or_default(), state }))
    }

    /// The tools over these databases, and the approvals of their calls.
    fn tools(&self, databases: &Databases) -> (Vec<Tool>, ProjectApprovals) {
        let problems = self.problems;
        let ProjectPlan { bound, personalities, redactor, lock, .. } = self.plan;
        let Bound { declared, names, secrets, policy, .. } = bound;
        let Declared { root, file, parts, .. } = declared;
        let used = ProjectParts::new(databases, &self.folders, &self.storage, secrets);
        let is_held = self.trust.reason.is_some();
        let third_parties = ThirdParties { redactor, lock, is_held };
        let artifacts = self.artifacts.as_ref();
        let tools = build_tools(parts, &used, artifacts, names, third_parties, problems);
        report_unreachable_hosts(personalities, &tools, parts, problems);
        report_unreachable_hubs(personalities, parts, problems);
        names.sandboxes.report_uncontained(problems);
        let tools = offered_with_secrets(tools, secrets);
        let asks = policy.rules.iter().any(|rule| rule.effect == Effect::Ask)
            || tools.iter().any(|tool| tool.asks_when_tainted());
        let weak = names.sandboxes.weak_programs();
        let approvals = ProjectApprovals::new(
            (&file.approvals, &file.policy),
            asks,
            &self.sessions,
            root.path(),
            &weak,
            (secrets, self.trust.untrusted.as_ref()),
            problems,
        );
        (tools, approvals)
    }
}

/// The skills at load time, and the folders to search for them later.
struct GatheredSkills {
    all: Skills,
    watched: Option<WatchedSkills>,
    of_plugins: Vec<(Arc<str>, Option<WatchedSkills>)>,
}

fn gather_skills(bound: &Bound) -> GatheredSkills {
    let for_all = for_all_skills(&bound.declared.file.skills);
    let mut gathered =
        GatheredSkills { all: for_all.clone(), watched: None, of_plugins: Vec::new() };
    for (part, skills) in bound.declared.parts.iter().zip(&bound.skills) {
        // Duplicate names were recorded.
        let with = |all: &Skills| all.with_shared(skills.iter().cloned());
        gathered.all = with(&gathered.all).unwrap_or(gathered.all);
        let names = bound.names.clone();
        let watched = WatchedSkills::new(part, names, with(&for_all).unwrap_or_default());
        match part.plugin_id() {
            None => gathered.watched = watched,
            Some(id) => gathered.of_plugins.push((Arc::clone(id), watched)),
        }
    }
    gathered
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

//! The third phase of loading: everything that a project would open or dial.

use std::sync::Arc;

use toolcrib_engine::Redactor;

use super::{bound::Bound, declared::Declared, models::plan_models, parts::ProjectModels};
use crate::{
    bind::mcp_files::McpFiles,
    build::{
        DatabaseSpecs, DeclaredHub, DeclaredPersonality, FolderSpecs, HubSources, McpSources,
        mcp::server::McpServer, report_undeclared,
    },
    error::LoadError,
    file::PROJECT_FILE,
    powers::{facts, powers},
    private,
    read::owner::FileOwner,
    user::{
        lock::{Lock, PinFiles},
        options::Mode,
        shared_tokens::TokenPlace,
        trust::{
            consent::{Review, TrustDecision},
            decide,
            facts::Facts,
        },
    },
};

/// Why no source is queried if the options forbid it.
pub(super) const OFFLINE: &str = "no program is started and no connection opened (--offline)";

/// A project before anything of it is opened or dialed.
pub struct ProjectPlan {
    pub(super) bound: Bound,
    pub(super) redactor: Redactor,
    pub(super) lock: Lock,
    pub(super) tokens: TokenPlace,
    pub(super) mcp: Vec<McpServer>,
    pub(super) hubs: Vec<DeclaredHub>,
    pub(super) models: ProjectModels,
    pub(super) personalities: Vec<DeclaredPersonality>,
    pub(super) databases: DatabaseSpecs,
    pub(super) folders: FolderSpecs,
    /// The user's decision, once it is made.
    pub(super) trust: Option<TrustDecision>,
}

impl Bound {
    /// Plans what is opened and dialed.
    ///
    /// # Errors
    /// The model of the options cannot be used.
    pub(super) fn plan(self) -> Result<ProjectPlan, LoadError> {
        let Declared { problems, root, state, file, .. } = &self.declared;
        let redactor = self.secrets.redactor();
        let lock = lock_of(&self.declared, &redactor);
        let Declared { options, .. } = &self.declared;
        let tokens = TokenPlace::of(file, options.store.is_some(), &self.secrets);
        let (mcp, hubs) = self.remote_sources(&redactor, &lock, &tokens);
        self.names.sandboxes.report_uncontained(problems);
        let (models, personalities) = plan_models(&self)?;
        let databases = DatabaseSpecs::read(&file.databases, root, state, &self.names, problems);
        let folders = FolderSpecs::read(&file.files, root, state, problems);
        let shared = file.approvals.shared.iter().flat_map(|(key, marks)| [key, marks]);
        for secret in file.sessions.secret().into_iter().chain(shared) {
            report_undeclared(secret, &self.names, problems);
        }
        Ok(ProjectPlan {
            redactor,
            lock,
            tokens,
            mcp,
            hubs,
            models,
            personalities,
            databases,
            folders,
            trust: None,
            bound: self,
        })
    }

    /// The MCP servers and the hubs, of the project and of its plugins.
    fn remote_sources(
        &self,
        redactor: &Redactor,
        lock: &Lock,
        tokens: &TokenPlace,
    ) -> (Vec<McpServer>, Vec<DeclaredHub>) {
        let Declared { options, problems, state, parts, mcp_files, .. } = &self.declared;
        let secrets = &self.secrets;
        let no_files = McpFiles::default();
        let logs = matches!(options.mode, Mode::Run { .. }).then_some(state);
        let (mut mcp, mut hubs) = (Vec::new(), Vec::new());
        for part in parts {
            let names = &self.names.seen_by(part);
            let servers = McpSources {
                sections: &part.declared.mcp,
                files: if part.plugin_id().is_none() { mcp_files } else { &no_files },
                secrets,
                names,
                root: &part.root,
                allow_stray_children: options.allow_stray_children,
                trusted: &options.trusted,
                lint_allow: &options.lint_allow,
                flags: &options.flags,
                lock,
                logs,
                tokens,
                redactor,
                problems,
            };
            mcp.extend(servers.build());
            let sections = &part.declared.hubs;
            hubs.extend(HubSources { sections, secrets, names, lock, redactor, problems }.build());
        }
        (mcp, hubs)
    }
}

impl ProjectPlan {
    /// The user's decision on the project; none is asked for while its files have errors.
    ///
    /// # Errors
    /// [`LoadError::NotTrusted`].
    pub(super) fn decide(&self) -> Result<TrustDecision, LoadError> {
        let Declared { options, problems, .. } = &self.bound.declared;
        if problems.has_errors() {
            return Ok(TrustDecision::default());
        }
        let offline = options.offline.then(|| Arc::from(OFFLINE));
        let Some(consent) = &options.consent else {
            if self.folders.has_writable() {
                // Records the programs of the project, which the floor of folders protects.
                self.without_facts();
            }
            return Ok(TrustDecision { reason: offline, ..TrustDecision::default() });
        };
        let review = self.without_facts();
        // Without an action that needs trust, no record is compared.
        let review = if review.needs_trust() { self.with_facts(review) } else { review };
        decide(&review, &**consent, offline, PROJECT_FILE)
            .map_err(|message| LoadError::NotTrusted { message })
    }

    /// The review of a project that is not opened.
    ///
    /// # Errors
    /// [`LoadError::Diagnostics`].
    pub(super) fn into_review(self) -> Result<Review, LoadError> {
        let review = self.with_facts(self.without_facts());
        let problems = self.bound.declared.problems;
        match problems.has_errors() {
            true => Err(LoadError::Diagnostics(problems.into_diagnostics())),
            false => Ok(review),
        }
    }

    /// The actions of the project with its user's authority, and the files that declare them. Records
    /// the programs of the project. The facts, which read its files once more, are left out.
    fn without_facts(&self) -> Review {
        let Declared { root, state, file, parts, mcp_files, .. } = &self.bound.declared;
        let powers = powers(file, parts, mcp_files, (&self.databases, &self.folders), root);
        // A load of imported files alone reads nothing of the current folder.
        let is_project = parts.first().is_some_and(|own| own.skills.has_folder());
        let folder = is_project.then(|| root.path().to_owned());
        let mut owned = root.reads().owned();
        if state.is_default() {
            owned.extend(FileOwner::at(state.path()));
        }
        Review { folder, powers, facts: Facts::default(), owned }
    }

    fn with_facts(&self, review: Review) -> Review {
        let parts = &self.bound.declared.parts;
        let facts = match review.folder {
            Some(_) => facts(parts, &self.bound.skills, &review.powers),
            None => Facts::default(),
        };
        Review { facts, ..review }
    }
}

/// The pinned definitions: of a project's folder, or of the first imported file without one.
fn lock_of(declared: &Declared, redactor: &Redactor) -> Lock {
    let Declared { options, root, is_folder, .. } = declared;
    let import = options.imports.first().filter(|_| !is_folder);
    let import = import.map(|file| file.canonicalize().unwrap_or_else(|_| file.clone()));
    let subject = import.as_deref().unwrap_or(root.path());
    let shared = is_folder.then(|| root.path().to_owned());
    let files = PinFiles::new(subject, shared, private::config_of_user());
    let runs = matches!(options.mode, Mode::Run { .. });
    Lock::new(files, (options.lock, runs), &options.flags, redactor)
}

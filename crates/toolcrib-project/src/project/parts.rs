//! The parts of a loaded project.

use std::{path::PathBuf, sync::Arc, time::Duration};

use toolcrib_agent::{Budget, TurnLimits};
use toolcrib_artifacts::Artifacts;
use toolcrib_capabilities::{
    database::{Database, postgres::PostgresDatabase},
    files::Files,
};
use toolcrib_core::{Model, Policy, Tool};
use toolcrib_engine::{Deferral, Limits, Redactor, Skills};
use toolcrib_models::Vendor;

use super::plugin::FolderPlugin;
use crate::{
    build::{
        DeclaredHub, DeclaredModel, DeclaredPersonality, Prices, Reliability,
        hook::Hook,
        mcp::server::McpServer,
        serve::{ServeSettings, ServeToken},
    },
    skills::watched::WatchedSkills,
    user::{
        approvals::ProjectApprovals, lock::Lock, own_store::OwnStore, secrets::ProjectSecrets,
        sessions::Sessions, state::StateFolder, trust::consent::TrustDecision,
    },
};

/// The offered tools and skills, and the rules about them.
#[derive(Clone)]
pub(super) struct ProjectTools {
    pub(super) tools: Vec<Tool>,
    pub(super) skills: Skills,
    /// The skills while the project is in use; `None` without a skills folder.
    pub(super) watched: Option<WatchedSkills>,
    pub(super) plugins: Vec<FolderPlugin>,
    pub(super) policy: Policy,
    pub(super) hooks: Vec<Hook>,
    pub(super) deferral: Deferral,
    pub(super) limits: Limits,
    pub(super) convert_text_arguments: bool,
}

/// The agent and its personalities.
#[derive(Clone)]
pub(super) struct ProjectAgent {
    pub(super) id: Option<Arc<str>>,
    pub(super) system: Option<Arc<str>>,
    pub(super) personalities: Vec<DeclaredPersonality>,
    pub(super) max_iterations: Option<u32>,
    pub(super) turn_timeout: Option<Duration>,
    pub(super) turn_limits: TurnLimits,
    pub(super) budget: Budget,
}

/// The models.
#[derive(Clone)]
pub(super) struct ProjectModels {
    pub(super) chosen: ChosenModels,
    /// The models with a project name.
    pub(super) declared: Vec<DeclaredModel>,
    pub(super) prices: Prices,
}

/// The models of the agent, and the rules for their failures.
#[derive(Clone)]
pub(super) struct ChosenModels {
    pub(super) model: Option<Arc<dyn Model>>,
    /// The vendor, if the model is named by it alone.
    pub(super) vendor_alone: Option<Vendor>,
    pub(super) fallback_models: Vec<Arc<dyn Model>>,
    pub(super) reliability: Reliability,
}

/// The MCP servers and hubs, and how far they are trusted.
#[derive(Clone)]
pub(super) struct ProjectRemote {
    pub(super) mcp: Vec<McpServer>,
    pub(super) hubs: Vec<DeclaredHub>,
    pub(super) lock: Lock,
    pub(super) trust: TrustDecision,
    pub(super) secrets: ProjectSecrets,
    /// Shared by all engines and clients: it also knows the tokens that servers get later.
    pub(super) redactor: Redactor,
}

/// The stored state, and the opened databases and folders.
#[derive(Clone)]
pub(super) struct ProjectState {
    pub(super) folder: StateFolder,
    pub(super) sessions: Sessions,
    pub(super) own: OwnStore,
    pub(super) approvals: ProjectApprovals,
    pub(super) artifacts: Option<Artifacts>,
    /// Whether artifacts of a named conversation remain after this process has ended.
    pub(super) keeps_artifacts: bool,
    pub(super) databases: Vec<Database>,
    pub(super) database_servers: Vec<PostgresDatabase>,
    pub(super) files: Vec<Files>,
}

/// The settings of a gateway.
#[derive(Clone)]
pub(super) struct ProjectServing {
    pub(super) tokens: Vec<ServeToken>,
    pub(super) settings: ServeSettings,
    pub(super) watched_files: Vec<PathBuf>,
}

//! `toolcrib.toml` as typed data: validated on its own, with positions for the later checks against
//! other parts.

mod approvals;
mod arguments;
mod artifacts;
mod database;
mod files;
mod hook;
mod hub;
mod mcp;
mod model;
mod params;
mod personality;
mod plugin;
mod policy;
mod prices;
mod reliability;
mod remote;
mod sandbox;
mod schema;
pub(crate) mod secrets;
mod serve;
mod sessions;
mod settings;
mod team;
mod text;
mod tool;
mod tool_search;

use std::sync::Arc;

use toolcrib_config::{Document, Located, Problems, Table};

pub(crate) use self::{
    approvals::ApprovalsSection,
    arguments::ArgumentSection,
    artifacts::ArtifactsSection,
    database::{DatabaseSection, DatabaseSource},
    files::FilesSection,
    hook::{HookPlace, HookSection},
    hub::HubSection,
    mcp::{
        CallerSection, EndpointSection, McpSection, McpSettings, Pair, ProgramSection,
        TransportSection,
    },
    model::{KeySource, ModelSection},
    personality::{NetworkSection, PersonalitySection},
    plugin::{PluginFile, PluginSection},
    policy::{PolicySection, RoleSection, RuleSection},
    prices::{BudgetSection, PricesSection},
    reliability::{ReliabilityRuleSection, ReliabilitySection, Verb},
    remote::REMOTE_ON_FAILURE,
    sandbox::SandboxDefaultSection,
    schema::{SchemaProblem, check_schema},
    secrets::{SECRET, SecretSection, is_secret_name},
    serve::{OAuthSection, ServeEndpointSection, ServeSection, TlsSection, TokenSection},
    sessions::{SessionsSection, StorePlace},
    settings::{AgentSection, LimitsSection, SkillsSection, SystemText, tools_mode},
    team::TeamSection,
    text::Text,
    tool::{Input, ToolSection},
    tool_search::ToolSearchSection,
};

/// The file that makes a folder a project.
pub const PROJECT_FILE: &str = "toolcrib.toml";

/// The file in a plugin's folder that declares its content.
pub const PLUGIN_FILE: &str = "plugin.toml";

/// The whole `toolcrib.toml`.
#[derive(Debug, Default)]
pub(crate) struct ProjectFile {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) convert_text_arguments: Option<bool>,
    pub(crate) agent: AgentSection,
    pub(crate) limits: LimitsSection,
    pub(crate) budget: BudgetSection,
    pub(crate) prices: PricesSection,
    pub(crate) sandbox: SandboxDefaultSection,
    pub(crate) skills: SkillsSection,
    pub(crate) artifacts: Option<ArtifactsSection>,
    pub(crate) sessions: SessionsSection,
    pub(crate) approvals: ApprovalsSection,
    pub(crate) secrets: Vec<SecretSection>,
    pub(crate) databases: Vec<DatabaseSection>,
    pub(crate) files: Vec<FilesSection>,
    pub(crate) models: Vec<ModelSection>,
    /// The imported `mcpServers` files.
    pub(crate) mcp_files: Vec<Located<Arc<str>>>,
    pub(crate) declared: ToolDeclarations,
    pub(crate) plugins: Vec<PluginSection>,
    pub(crate) serve: ServeSection,
    pub(crate) policy: PolicySection,
    pub(crate) tool_search: ToolSearchSection,
    pub(crate) reliability: ReliabilitySection,
    pub(crate) personalities: Vec<PersonalitySection>,
    pub(crate) teams: Vec<TeamSection>,
    pub(crate) hooks: Vec<HookSection>,
}

/// The declarations about tools, of a project or of a plugin.
#[derive(Debug, Default)]
pub(crate) struct ToolDeclarations {
    pub(crate) mcp: Vec<McpSection>,
    pub(crate) hubs: Vec<HubSection>,
    pub(crate) tools: Vec<ToolSection>,
}

impl ToolDeclarations {
    fn read(file: &Table<'_>) -> Self {
        Self {
            mcp: McpSection::read_all(file),
            hubs: HubSection::read_all(file),
            tools: file.tables("tool", ToolSection::read).into_iter().flatten().collect(),
        }
    }
}

impl ProjectFile {
    /// Reads the file. `None` if it is not TOML; else all readable parts, with every problem
    /// recorded.
    pub(crate) fn read(document: &Document, problems: &Problems) -> Option<Self> {
        document.read(problems, |file| Self {
            name: file.text("name").map(|name| name.value),
            convert_text_arguments: file
                .value("convert_text_arguments")
                .and_then(|value| value.boolean())
                .map(|converts| converts.value),
            agent: file.table("agent", AgentSection::read).unwrap_or_default(),
            limits: file.table("limits", LimitsSection::read).unwrap_or_default(),
            budget: file.table("budget", BudgetSection::read).unwrap_or_default(),
            prices: PricesSection::read(file),
            sandbox: file.table("sandbox", SandboxDefaultSection::read).unwrap_or_default(),
            skills: file.table("skills", SkillsSection::read).unwrap_or_default(),
            artifacts: file.table("artifacts", ArtifactsSection::read),
            sessions: file.table("sessions", SessionsSection::read).unwrap_or_default(),
            approvals: file.table("approvals", ApprovalsSection::read).unwrap_or_default(),
            secrets: SecretSection::read_all(file),
            databases: DatabaseSection::read_all(file),
            files: FilesSection::read_all(file),
            models: ModelSection::read_all(file),
            mcp_files: file.texts("mcp_files"),
            declared: ToolDeclarations::read(file),
            plugins: PluginSection::read_all(file),
            serve: file.table("serve", ServeSection::read).unwrap_or_default(),
            policy: PolicySection::read(file),
            tool_search: file.table("tool_search", ToolSearchSection::read).unwrap_or_default(),
            reliability: ReliabilitySection::read(file),
            personalities: file.tables("personality", PersonalitySection::read),
            teams: TeamSection::read_all(file),
            hooks: file.tables("hook", HookSection::read),
        })
    }
}

//! Builds the parts of an engine from typed data. Resolves names: references between sections are
//! checked.

mod addresses;
mod alternatives;
mod artifacts;
mod databases;
mod files;
mod grant;
mod hub;
mod lint;
mod located;
mod mcp;
mod model;
mod models;
mod names;
mod own;
mod part;
mod part_names;
mod personality;
mod policy;
mod prices;
mod process_limit;
mod reliability;
mod remote;
mod sandbox;
mod script;
mod secrets;
mod serve;
mod skills;
mod tools;

pub(crate) use self::{
    alternatives::{EngineSource, Remote, check_alternatives, sources},
    artifacts::build_artifacts,
    databases::{DatabaseSpecs, Databases, Entry as DatabaseEntry},
    files::{Entry as FolderEntry, FolderSpecs, keep_usable_tools},
    hub::HubSources,
    mcp::{McpSources, files::McpFiles},
    model::ModelSources,
    models::build_models,
    names::Names,
    own::ProjectStorage,
    part::Part,
    part_names::{check_plugins, report_captured_names, report_false_origins, report_taken_names},
    personality::{
        DeclaredPersonality, PersonalitySources, report_unreachable_hosts, report_unreachable_hubs,
    },
    policy::build_policy,
    prices::refuse_unknown_costs,
    reliability::{NamedModel, Reliability, build_reliability, warn_of_unknown_costs},
    sandbox::SandboxDefaults,
    secrets::{build_secrets, offered_with_secrets, references_in},
    serve::{build_serving, build_tokens},
    skills::{SkillPlace, build_skill, build_skills, for_all_skills},
    tools::{
        ThirdParties, build_hooks, build_tools, private_addresses, read_documents, read_schemas,
        report_duplicate_tools,
    },
};
pub use self::{
    hub::DeclaredHub,
    models::{DeclaredModel, environment_model},
    prices::Prices,
};

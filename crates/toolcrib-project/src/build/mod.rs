//! From typed data to the parts of an engine. Names are resolved here: what one section says of
//! another is checked against what is there.

mod alternatives;
mod artifacts;
mod databases;
mod hub;
mod lint;
mod mcp;
mod model;
mod models;
mod names;
mod part;
mod personality;
mod policy;
mod process_limit;
mod reliability;
mod script;
mod secrets;
mod serve;
mod skills;
mod tools;

pub(crate) use self::{
    alternatives::{Remote, WithAlternatives, check_alternatives, sources},
    artifacts::build_artifacts,
    databases::{DatabaseSpecs, Databases},
    hub::HubSources,
    mcp::{McpFiles, McpSources},
    model::ModelSources,
    models::build_models,
    names::Names,
    part::{Part, check_plugins, report_captured_names, report_false_origins, report_taken_names},
    personality::{
        DeclaredPersonality, PersonalitySources, report_unreachable_hosts, report_unreachable_hubs,
    },
    policy::build_policy,
    process_limit::report_unlimited_processes,
    reliability::{NamedModel, Reliability, build_reliability, warn_of_unknown_costs},
    secrets::{build_secrets, offered_with_secrets, references},
    serve::build_tokens,
    skills::{SkillPlace, build_skill, build_skills, for_all_skills},
    tools::{build_tools, read_schemas, report_duplicate_tools},
};
pub use self::{
    hub::DeclaredHub,
    models::{DeclaredModel, environment_model},
};

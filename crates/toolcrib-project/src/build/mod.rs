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
mod reliability;
mod script;
mod secrets;
mod serve;
mod skills;
mod tools;

pub(crate) use self::{
    alternatives::{Remote, WithAlternatives, check_alternatives, sources},
    artifacts::build_artifacts,
    databases::Databases,
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
    reliability::{NamedModel, Reliability, build_reliability},
    secrets::{build_secrets, offered_with_secrets},
    serve::build_tokens,
    skills::{SkillPlace, build_skill, build_skills, for_all_skills},
    tools::{build_tools, report_duplicate_tools},
};
pub use self::{
    hub::DeclaredHub,
    models::{DeclaredModel, environment_model},
};

//! Builds the parts of an engine from typed data. Resolves names: references between sections are
//! checked.

mod artifacts;
mod databases;
mod files;
pub(crate) mod hook;
mod hub;
mod lint;
pub(crate) mod mcp;
mod model;
mod models;
mod own;
mod personality;
mod policy;
mod prices;
mod process_limit;
mod reliability;
mod script;
mod secrets;
pub(crate) mod serve;
mod skills;
mod tools;

pub(crate) use self::{
    artifacts::build_artifacts,
    databases::{DatabaseSpecs, Databases, Entry as DatabaseEntry},
    files::{Entry as FolderEntry, FolderSpecs, Folders, keep_usable_tools},
    hub::HubSources,
    mcp::McpSources,
    model::ModelSources,
    models::build_models,
    own::ProjectStorage,
    personality::{
        DeclaredPersonality, PersonalitySources, report_unreachable_hosts, report_unreachable_hubs,
    },
    policy::build_policy,
    prices::refuse_unknown_costs,
    reliability::{NamedModel, Reliability, build_reliability, warn_of_unknown_costs},
    secrets::{build_secrets, offered_with_secrets, references_in, report_undeclared},
    serve::{build_serving, build_tokens},
    skills::{SkillPlace, build_skill, build_skills, for_all_skills},
    tools::{
        ProjectParts, ThirdParties, build_hooks, build_tools, private_addresses, read_documents,
        read_schemas, report_duplicate_tools,
    },
};
pub use self::{
    hub::DeclaredHub,
    model::vendor_model,
    models::{DeclaredModel, configured_model},
    prices::Prices,
};

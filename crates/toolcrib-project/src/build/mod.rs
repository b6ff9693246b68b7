//! From typed data to the parts of an engine. Names are resolved here: what one section says of
//! another is checked against what is there.

mod databases;
mod mcp;
mod model;
mod models;
mod names;
mod policy;
mod script;
mod secrets;
mod serve;
mod skills;
mod tools;

pub use self::models::{DeclaredModel, environment_model};
pub(crate) use self::{
    databases::Databases,
    mcp::{McpFiles, McpSources},
    model::ModelSources,
    models::build_models,
    names::Names,
    policy::build_policy,
    secrets::build_secrets,
    serve::build_tokens,
    skills::build_skills,
    tools::{build_tools, report_duplicate_tools},
};

//! The arguments of the identity and the situation that commands act for.

use std::str::FromStr;

use clap::Args;
use serde_json::{Map, Value};
use toolcrib_core::SessionOwner;

use super::sessions::session_word;

/// The principal and the tenant.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct IdentityArgs {
    /// Act for this principal [default: none]
    #[arg(long = "as", value_name = "PRINCIPAL")]
    pub(crate) principal: Option<String>,
    /// Act within this tenant [default: none]
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
}

impl IdentityArgs {
    /// The owner of its sessions.
    pub(crate) fn owner(&self) -> SessionOwner {
        let text = |value: &Option<String>| value.as_deref().map(Into::into);
        SessionOwner { tenant: text(&self.tenant), principal: text(&self.principal) }
    }
}

/// A claim, as `NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl FromStr for Claim {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) =
            text.split_once('=').ok_or("write NAME=VALUE, such as groups=trainees")?;
        if name.trim().is_empty() {
            return Err("the claim has no name; write NAME=VALUE, such as groups=trainees");
        }
        if name.trim() != name {
            return Err(
                "the claim's name begins or ends with whitespace, and no role can match such a \
                 claim",
            );
        }
        if name.ends_with(':') {
            return Err(
                "a claim's value is text, not JSON; write NAME=VALUE, once for each value of a \
                 list",
            );
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

/// The claims as in a token: each a string, or a list of strings if its name is repeated.
pub(crate) fn claims(given: &[Claim]) -> Map<String, Value> {
    let mut claims = Map::new();
    for Claim { name, value } in given {
        let value = Value::from(value.as_str());
        match claims.get_mut(name) {
            None => drop(claims.insert(name.clone(), value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    claims
}

/// The principal, its claims, and the active skills.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Situation {
    /// Start with this skill active. May be repeated; the last counts as activated last
    #[arg(long = "skill", value_name = "SKILL")]
    pub(crate) skills: Vec<String>,
    #[command(flatten)]
    pub(crate) whom: IdentityArgs,
    /// Add a token claim (a string), used to resolve roles. May be repeated; repeating a name makes
    /// a list [default: no claims]
    #[arg(long = "claim", value_name = "NAME=VALUE")]
    pub(crate) claims: Vec<Claim>,
    /// Act as this personality of the project [default: the one named default]
    #[arg(long, value_name = "PERSONALITY")]
    pub(crate) personality: Option<String>,
    /// The session, by id or name: `run` continues or creates it; tools, policies and artifacts
    /// see it [default: a new one]
    #[arg(long, value_name = "SESSION", value_parser = session_word)]
    pub(crate) session: Option<String>,
}

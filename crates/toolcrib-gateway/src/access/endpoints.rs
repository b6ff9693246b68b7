//! Endpoints beside `/mcp`: `/mcp/NAME`, each with the menu of a personality.

use std::{collections::BTreeMap, sync::Arc};

use super::Access;
use crate::error::GatewayError;

/// The path of the endpoint that each gateway has.
pub(crate) const MCP: &str = "/mcp";

/// The limit of characters of a name.
const LONGEST: usize = 64;

/// The name that the paths of skills have: `/mcp/skill/S`.
const RESERVED: &str = "skill";

/// The personalities of endpoints, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Endpoints(BTreeMap<Arc<str>, Arc<str>>);

/// An endpoint that a request names.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) name: Arc<str>,
    personality: Arc<str>,
}

impl Endpoints {
    pub(crate) fn add(&mut self, name: Arc<str>, personality: Arc<str>) {
        self.0.insert(name, personality);
    }

    pub(crate) fn check_names(&self) -> Result<(), GatewayError> {
        let is_permitted = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_valid = |name: &str| {
            (1..=LONGEST).contains(&name.len())
                && name.chars().all(is_permitted)
                && name != RESERVED
        };
        match self.0.keys().find(|name| !is_valid(name)) {
            Some(name) => Err(GatewayError::Endpoint(name.to_string())),
            None => Ok(()),
        }
    }

    /// The access that each of them gives to a caller without a personality.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = Access> {
        self.0.values().map(|personality| Access::new().personality(Arc::clone(personality)))
    }

    /// The endpoint at a path. Names need no decoding: they consist of unreserved characters.
    pub(crate) fn at(&self, path: &str) -> Option<Endpoint> {
        self.named(path.strip_prefix(MCP)?.strip_prefix('/')?)
    }

    pub(crate) fn named(&self, name: &str) -> Option<Endpoint> {
        let (name, personality) = self.0.get_key_value(name)?;
        Some(Endpoint { name: Arc::clone(name), personality: Arc::clone(personality) })
    }
}

impl Endpoint {
    /// The access of a caller here: with the personality of the endpoint. A caller that has a
    /// personality never gets another one, which may reach more.
    ///
    /// # Errors
    /// The personality of the caller.
    pub(crate) fn access(&self, of_caller: &Access) -> Result<Arc<Access>, Arc<str>> {
        match &of_caller.personality {
            Some(own) if *own != self.personality => Err(Arc::clone(own)),
            _ => Ok(Arc::new(of_caller.clone().personality(Arc::clone(&self.personality)))),
        }
    }
}

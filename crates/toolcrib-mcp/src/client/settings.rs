//! The settings of a client, except the transport.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use toolcrib_config::suggest;
use toolcrib_core::{BreakerConfig, DefinitionCheck, DefinitionPins, Glob, ListOrder};

use super::status::UnmatchedPattern;
use crate::{
    connection::{Redaction, WireObserver},
    server::name::ServerName,
};

/// The settings of a client, except the transport.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) trusted: bool,
    pub(crate) include: Option<Vec<Glob>>,
    pub(crate) exclude: Vec<Glob>,
    /// Names and descriptions that differ here, by the tools' own names.
    pub(crate) tools: BTreeMap<Arc<str>, ToolTexts>,
    pub(crate) order: ListOrder,
    pub(crate) definition_check: Option<DefinitionCheck>,
    pub(crate) redactor: Redaction,
    pub(crate) call_timeout: Option<Duration>,
    pub(crate) max_result_chars: Option<usize>,
    pub(crate) start_timeout: Duration,
    pub(crate) list_timeout: Duration,
    pub(crate) breaker: BreakerConfig,
    pub(crate) session: SessionScope,
    pub(crate) max_sessions: usize,
    pub(crate) skills: bool,
    pub(crate) observer: Option<WireObserver>,
}

/// The operator's name and description of a tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolTexts {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) description: Option<Arc<str>>,
}

impl Settings {
    /// The name of a tool here, without the server's: the operator's, or else its own.
    pub(crate) fn name_of<'a>(&'a self, own: &'a str) -> &'a str {
        self.tools.get(own).and_then(|texts| texts.name.as_deref()).unwrap_or(own)
    }

    /// The other tool that the operator has given this tool's own name.
    pub(crate) fn namesake(&self, own: &str) -> Option<&str> {
        let mut named = self.tools.iter().filter(|(_, texts)| texts.name.as_deref() == Some(own));
        named.find(|(tool, _)| &***tool != own).map(|(tool, _)| &**tool)
    }

    /// Whether the names of tools are valid and distinct.
    ///
    /// # Errors
    /// The problem.
    pub(crate) fn check_names(&self, server: &ServerName) -> Result<(), String> {
        for (own, texts) in &self.tools {
            let Some(name) = &texts.name else { continue };
            let is_fitted = || server.tool_name(name) != format!("mcp__{server}__{name}");
            if name.is_empty() || is_fitted() {
                return Err(format!(
                    "`{name}` cannot be the name of the tool `{own}`: use a-z, A-Z, 0-9, `_` and \
                     `-`, so few that `mcp__{server}__` and the name have at most 64 characters"
                ));
            }
            let is_same = |(other, texts): &(&Arc<str>, &ToolTexts)| {
                *other != own && (*other == name || texts.name.as_ref() == Some(name))
            };
            if let Some((other, _)) = self.tools.iter().find(is_same) {
                return Err(format!(
                    "the tools `{own}` and `{other}` would both be called `{name}`; choose another \
                     name"
                ));
            }
        }
        Ok(())
    }

    /// The pins of its definitions, if there are any.
    pub(crate) fn pins(&self) -> Option<&Arc<dyn DefinitionPins>> {
        self.definition_check.as_ref()?.pins()
    }

    /// The patterns that match none of these names.
    pub(crate) fn unmatched<'a>(
        &self,
        names: &(impl Iterator<Item = &'a str> + Clone),
    ) -> Vec<UnmatchedPattern> {
        let include = self.include.iter().flatten().map(|glob| ("include", glob));
        let exclude = self.exclude.iter().map(|glob| ("exclude", glob));
        let unmatched = include.chain(exclude);
        let unmatched = unmatched.filter(|(_, glob)| !names.clone().any(|name| glob.matches(name)));
        let unmatched = unmatched.map(|(list, glob)| (list, glob.as_str()));
        let tools = self.tools.keys().map(|own| ("tool", &**own));
        let unmatched =
            unmatched.chain(tools.filter(|(_, own)| !names.clone().any(|it| it == *own)));
        // A server decides the number and length of names.
        let candidates = names.clone().filter(|name| name.len() <= 128).take(1_000);
        let described = |(list, pattern): (_, &str)| UnmatchedPattern {
            list,
            pattern: pattern.into(),
            nearest: suggest::nearest(pattern, candidates.clone())
                .map(|nearest| self.redactor.text(nearest).into()),
        };
        unmatched.map(described).collect()
    }
}

/// Whose calls share a session with a server, and so its state: a logged-in page, a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SessionScope {
    /// Those of all identities: for a server that keeps no state between calls, or is meant to share
    /// it. The server cannot ask the client of a call.
    Shared,
    /// Those of a tenant and principal, whose clients have the same abilities.
    #[default]
    Principal,
    /// Those of one conversation, such as the session of a gateway's client.
    Client,
}

/// The handshakes that a client tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Handshake {
    /// `server/discover`, then `initialize`.
    #[default]
    Any,
    /// `server/discover` only, of versions since 2026-07-28.
    Discover,
    /// `initialize` only, of versions before 2026-07-28.
    Initialize,
}

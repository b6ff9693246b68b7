//! The settings of a client, except the transport.

use std::{sync::Arc, time::Duration};

use toolcrib_config::suggest;
use toolcrib_core::{BreakerConfig, DefinitionCheck, DefinitionPins, Glob, ListOrder};

use super::status::UnmatchedPattern;
use crate::connection::{Redaction, WireObserver};

/// The settings of a client, except the transport.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) trusted: bool,
    pub(crate) include: Option<Vec<Glob>>,
    pub(crate) exclude: Vec<Glob>,
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

impl Settings {
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
        // A server decides the number and length of names.
        let candidates = names.clone().filter(|name| name.len() <= 128).take(1_000);
        let described = |(list, glob): (_, &Glob)| UnmatchedPattern {
            list,
            pattern: glob.as_str().into(),
            nearest: suggest::nearest(glob.as_str(), candidates.clone())
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

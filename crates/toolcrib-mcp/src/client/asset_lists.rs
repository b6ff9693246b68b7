//! The last lists of what a server offers beside tools.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use rmcp::model::ServerCapabilities;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolcrib_core::__internal::{Flight, time_left};

use crate::connection::types::ServerNotice;

/// A list of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssetKind {
    /// Its prompts.
    Prompts,
    /// Its resources.
    Resources,
    /// Its templates of resources.
    Templates,
}

impl AssetKind {
    pub(super) const ALL: [Self; 3] = [Self::Prompts, Self::Resources, Self::Templates];

    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// Whether a server with these capabilities offers such a list.
    pub(super) fn is_offered(self, capabilities: &ServerCapabilities) -> bool {
        match self {
            Self::Prompts => capabilities.prompts.is_some(),
            Self::Resources | Self::Templates => capabilities.resources.is_some(),
        }
    }

    /// The announcement that such a list has changed.
    pub(super) fn changed(self) -> ServerNotice {
        match self {
            Self::Prompts => ServerNotice::PromptsChanged,
            Self::Resources | Self::Templates => ServerNotice::ResourcesChanged,
        }
    }

    /// The field of the result with the items.
    pub fn field(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }
}

/// The items of a list, as the server describes them.
pub(super) type Items = Arc<[Map<String, Value>]>;

/// The last lists of a session.
#[derive(Default)]
pub(super) struct Assets([Slot; 3]);

#[derive(Default)]
pub(super) struct Slot {
    pub(super) last: Option<CachedList>,
    /// The number of announced changes.
    pub(super) announced: u64,
    pub(super) under_way: Option<AssetRequest>,
    /// Whether it was not awaited to the end the last time. It is not awaited again until it is quick.
    pub(super) is_slow: bool,
    /// Whether a client received an answer without the list, or an older one.
    pub(super) is_missed: bool,
}

/// A list being requested.
pub(super) struct AssetRequest {
    /// The number of changes that were announced before.
    pub(super) announced: u64,
    pub(super) began: Instant,
    pub(super) flight: Flight<Option<Option<Items>>>,
}

#[derive(Clone)]
pub(super) struct CachedList {
    pub(super) items: Items,
    pub(super) epoch: u64,
    pub(super) announced: u64,
    pub(super) expires: Option<Instant>,
    /// When it arrived, and for how long it is valid by the server's word.
    pub(super) stated: Option<(Instant, Duration)>,
}

impl Assets {
    pub(super) fn slot(&mut self, kind: AssetKind) -> &mut Slot {
        let [prompts, resources, templates] = &mut self.0;
        match kind {
            AssetKind::Prompts => prompts,
            AssetKind::Resources => resources,
            AssetKind::Templates => templates,
        }
    }

    pub(super) fn fresh(&mut self, kind: AssetKind, epoch: u64) -> Option<Items> {
        let slot = self.slot(kind);
        let last = slot.last.as_ref()?;
        let is_fresh = last.epoch == epoch
            && last.announced == slot.announced
            && last.expires.is_none_or(|expires| expires > Instant::now());
        is_fresh.then(|| Arc::clone(&last.items))
    }

    /// How long the last list stays valid by the server's word: zero without its word, if it has
    /// announced a change, and if a request is waiting for a newer list.
    pub(super) fn fresh_for(&mut self, kind: AssetKind) -> Duration {
        let slot = self.slot(kind);
        let under_way = slot.under_way.as_ref();
        let is_newest = !slot.is_missed
            && under_way.is_none_or(|request| request.flight.clone().now_or_never().is_some());
        let last = slot.last.as_ref().filter(|last| is_newest && last.announced == slot.announced);
        match last.and_then(|last| last.stated) {
            Some((since, ttl)) => time_left(ttl, since.elapsed()),
            None => Duration::ZERO,
        }
    }

    pub(super) fn last(&mut self, kind: AssetKind) -> Option<Items> {
        self.slot(kind).last.as_ref().map(|last| Arc::clone(&last.items))
    }

    /// Whether a list is being requested.
    pub(super) fn is_under_way(&self) -> bool {
        let mut requests = self.0.iter().filter_map(|slot| slot.under_way.as_ref());
        requests.any(|request| request.flight.clone().now_or_never().is_none())
    }

    pub(super) fn announce(&mut self, kind: AssetKind) {
        self.slot(kind).announced += 1;
    }
}

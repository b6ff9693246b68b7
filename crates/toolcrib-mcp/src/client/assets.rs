//! A server's offers beside tools: prompts, resources and their templates, as it lists them.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout, timeout_at};
use toolcrib_core::{__internal::Flight, CancellationToken, PinKind, PinnedDefinition, ToolError};

use super::{
    McpClient,
    asset_lists::{AssetRequest, CachedList, Items},
    call::{failure, not_available},
    live::LiveConnection,
    pages::{ends_at, remove_known},
    request::{McpRequest, plain},
    skills::is_of_scheme,
    state::State,
    supervisor::Supervisor,
};
use crate::{
    __internal::AssetKind,
    connection::types::{RequestError, ServerNotice},
};

/// The limits of a list, as for tools.
const MOST_PAGES: usize = 1_000;
const MOST_ITEMS: usize = 10_000;
const MOST_CHARS: usize = 16 * 1024 * 1024;

impl McpClient {
    /// A list of the server, from memory while it is valid, or while the server does not answer; empty
    /// if the server does not offer any.
    ///
    /// # Errors
    /// A failure of the server, for models, with its cause.
    #[doc(hidden)]
    pub async fn assets(&self, kind: AssetKind) -> Result<Items, ToolError> {
        let session = self.session().map_err(not_available)?;
        let allowed = session.settings().list_timeout;
        timeout(allowed, session.assets(kind)).await.unwrap_or_else(|_| {
            session.last(kind).ok_or_else(|| {
                let server = session.server();
                ToolError::failed(format!("MCP server `{server}` did not answer in time"))
                    .caused_by(std::io::Error::other(format!(
                        "no answer within {allowed:?}{}",
                        session.stray()
                    )))
            })
        })
    }

    /// The same, for as long as a server that owes a response is awaited: `limit` counts from the first
    /// request that waits for it. Then the last list, or an empty one; the request continues, and
    /// a [notice](Self::notices) announces its result if it differs. `None` if the server is known not
    /// to offer such a list.
    #[doc(hidden)]
    pub async fn assets_within(&self, kind: AssetKind, limit: Duration) -> Option<Items> {
        self.session().ok()?.assets_within(kind, limit).await
    }

    /// How long the last list of its session stays valid by the server's word; zero without one.
    #[doc(hidden)]
    pub fn assets_fresh_for(&self, kind: AssetKind) -> Duration {
        let session = self.sessions().find(&self.whose);
        session.map(|session| session.state().assets.fresh_for(kind)).unwrap_or_default()
    }

    /// The last list of its session, if there is one, without asking the server.
    #[doc(hidden)]
    pub fn last_assets(&self, kind: AssetKind) -> Option<Items> {
        self.sessions().find(&self.whose)?.last(kind)
    }
}

impl Supervisor {
    async fn assets(self: &Arc<Self>, kind: AssetKind) -> Result<Items, ToolError> {
        let live = match self.connection().await {
            Ok(live) => live,
            Err(error) => return self.last(kind).ok_or_else(|| not_available(error)),
        };
        let capabilities = &live.connection().server().capabilities;
        if !kind.is_offered(capabilities) {
            return Ok(Arc::default());
        }
        let announced = {
            let mut state = self.state();
            if let Some(items) = state.assets.fresh(kind, live.epoch()) {
                return Ok(items);
            }
            state.assets.slot(kind).announced
        };
        let (items, ttl) = match self.all(kind.method(), kind.field()).await {
            Ok(all) => all,
            Err(error) => return self.last(kind).ok_or(error),
        };
        let items = match kind {
            AssetKind::Prompts => self.pinned_prompts(items)?,
            AssetKind::Resources => self.without_skills(items, "uri"),
            AssetKind::Templates => self.without_skills(items, "uriTemplate"),
        };
        // A list that is not announced to change is asked for each time.
        let announces = match kind {
            AssetKind::Prompts => capabilities
                .prompts
                .as_ref()
                .is_some_and(|prompts| prompts.list_changed == Some(true)),
            AssetKind::Resources | AssetKind::Templates => capabilities
                .resources
                .as_ref()
                .is_some_and(|resources| resources.list_changed == Some(true)),
        };
        let expires = match (ttl, announces) {
            (Some(ttl), _) if !ttl.is_zero() => Instant::now().checked_add(ttl),
            (_, true) => None,
            _ => Some(Instant::now()),
        };
        let (items_kept, epoch) = (Arc::clone(&items), live.epoch());
        let stated = ttl.map(|ttl| (Instant::now(), ttl));
        let last = CachedList { items: items_kept, epoch, announced, expires, stated };
        self.state().assets.slot(kind).last = Some(last);
        Ok(items)
    }

    async fn assets_within(self: &Arc<Self>, kind: AssetKind, limit: Duration) -> Option<Items> {
        let Ok(live) = self.connection_within(limit).await else {
            let mut state = self.state();
            state.assets.slot(kind).is_missed = true;
            let last = state.assets.last(kind).unwrap_or_default();
            let is_offered =
                state.info.as_ref().is_none_or(|info| kind.is_offered(&info.capabilities));
            return is_offered.then_some(last);
        };
        if !kind.is_offered(&live.connection().server().capabilities) {
            return None;
        }
        let (flight, until) = {
            let mut state = self.state();
            if let Some(items) = state.assets.fresh(kind, live.epoch()) {
                return Some(items);
            }
            let flight = self.ask_assets(&mut state, kind, limit);
            let is_slow = state.assets.slot(kind).is_slow;
            (flight, (!is_slow).then(|| state.awaited_until(limit)))
        };
        let listed = match until {
            Some(until) => timeout_at(until, flight).await.ok(),
            None => flight.now_or_never(),
        };
        let mut state = self.state();
        if listed.is_none() {
            let slot = state.assets.slot(kind);
            (slot.is_slow, slot.is_missed) = (true, true);
        }
        let listed = listed.flatten().flatten();
        Some(listed.or_else(|| state.assets.last(kind)).unwrap_or_default())
    }

    /// Requests a list, once for all who wait. It continues without them.
    fn ask_assets(
        self: &Arc<Self>,
        state: &mut State,
        kind: AssetKind,
        limit: Duration,
    ) -> Flight<Option<Option<Items>>> {
        let slot = state.assets.slot(kind);
        let announced = slot.announced;
        // One from before the last announcement would be outdated.
        if let Some(request) =
            slot.under_way.as_ref().filter(|request| request.announced == announced)
            && request.flight.clone().now_or_never().is_none()
        {
            return request.flight.clone();
        }
        state.requests();
        let (landing, outcome) = self.flight();
        let (flight, began) = (outcome.shared(), Instant::now());
        let request = AssetRequest { announced, began, flight: flight.clone() };
        state.assets.slot(kind).under_way = Some(request);
        let this = Arc::clone(self);
        self.spawn(async move {
            let before = this.last(kind).unwrap_or_default();
            let listed = timeout(this.settings().list_timeout, this.assets(kind)).await;
            let listed = listed.ok().and_then(Result::ok);
            landing.land(listed.clone());
            let is_news = {
                let mut state = this.state();
                let slot = state.assets.slot(kind);
                slot.under_way.take_if(|request| request.began == began);
                slot.is_slow &= began.elapsed() > limit;
                listed
                    .is_some_and(|listed| std::mem::take(&mut slot.is_missed) && *listed != *before)
            };
            if is_news {
                this.announce(kind.changed());
            }
        });
        flight
    }

    /// Announces the lists that clients have missed while the server was not connected.
    pub(super) fn announce_missed(&self, live: &LiveConnection) {
        let capabilities = &live.connection().server().capabilities;
        for kind in AssetKind::ALL.into_iter().filter(|kind| kind.is_offered(capabilities)) {
            let is_missed = std::mem::take(&mut self.state().assets.slot(kind).is_missed);
            if is_missed {
                self.announce(kind.changed());
            }
        }
    }

    fn last(&self, kind: AssetKind) -> Option<Items> {
        self.state().assets.last(kind)
    }

    /// The prompts without those that have changed since they were pinned.
    fn pinned_prompts(&self, items: Items) -> Result<Items, ToolError> {
        let Some(pins) = self.settings().pins() else { return Ok(items) };
        let definition = |item: &Map<String, Value>| PinnedDefinition {
            name: item.get("name").and_then(Value::as_str).unwrap_or_default().into(),
            definition: Value::Object(item.clone()),
            is_offered: true,
        };
        let mut definitions = items.iter().map(definition);
        let checked = pins.check(self.origin(), PinKind::Prompt, &mut definitions);
        let checked = checked.map_err(|problem| ToolError::failed(&*problem))?;
        let same = items.iter().zip(checked).filter(|(_, reason)| reason.is_none());
        Ok(same.map(|(item, _)| item.clone()).collect())
    }

    /// The resources that are not files of skills: those are read by the tool that verifies them.
    fn without_skills(&self, items: Items, key: &str) -> Items {
        if !self.settings().skills {
            return items;
        }
        let is_of_skill = |item: &&Map<String, Value>| {
            item.get(key).and_then(Value::as_str).is_some_and(|uri| self.is_of_skill(uri))
        };
        items.iter().filter(|item| !is_of_skill(item)).cloned().collect()
    }

    /// Whether a URI is one of a file of a skill, as far as the skills are known.
    pub(super) fn is_of_skill(&self, uri: &str) -> bool {
        let skills = || self.state().list.last.as_ref().map(|list| list.is_of_skill(uri));
        self.settings().skills && (is_of_scheme(uri) || skills().unwrap_or_default())
    }

    /// Lists again when the pinned definitions have changed.
    pub(super) fn pins_changed(self: &Arc<Self>) {
        self.state().assets.announce(AssetKind::Prompts);
        self.with(|state| {
            state.list.announced += 1;
            if state.list.last.is_some() {
                self.relist_in_background(state);
            }
        });
        self.noticed(ServerNotice::PromptsChanged);
    }

    /// All pages of a list.
    pub(super) async fn all(
        self: &Arc<Self>,
        method: &'static str,
        field: &str,
    ) -> Result<(Items, Option<Duration>), ToolError> {
        let broken = |problem: &str| {
            let error = RequestError::Malformed(format!("its `{method}`: {problem}"));
            failure(self.server(), true, error)
        };
        let is_legacy = self.connection().await.map_err(not_available)?.connection().is_legacy();
        let (mut all, mut ttl, mut size) = (Vec::new(), None, 0);
        let (mut cursor, mut seen) = (None::<String>, HashSet::new());
        for _ in 0..MOST_PAGES {
            let params = cursor.take().map(|cursor| ("cursor".to_owned(), Value::from(cursor)));
            let (params, cancellation) =
                (Arc::new(Map::from_iter(params)), CancellationToken::new());
            let request =
                McpRequest { method, params, on_progress: None, client: None, cancellation };
            let mut page = plain(self, request).await?;
            let Some(Value::Array(items)) = page.remove(field) else {
                return Err(broken("the list is missing"));
            };
            let first = all.len();
            for item in items {
                if let Value::Object(item) = item {
                    size +=
                        item.iter().map(|(key, value)| key.len() + text_len(value)).sum::<usize>();
                    all.push(item);
                }
            }
            if all.len() > MOST_ITEMS || size > MOST_CHARS {
                return Err(broken("it is too long"));
            }
            let page_ttl = page.get("ttlMs").and_then(Value::as_u64).map(Duration::from_millis);
            ttl = ttl.into_iter().chain(page_ttl).min();
            match page.remove("nextCursor") {
                Some(Value::String(next)) => {
                    let is_new = seen.insert(next.clone());
                    if ends_at(&next, is_new, is_legacy).is_some() {
                        let text =
                            |item: &Map<String, Value>, key| Some(item.get(key)?.to_string());
                        remove_known(&mut all, first, |item| {
                            text(item, "uri").or(text(item, "name"))
                        });
                        return Ok((all.into(), ttl));
                    }
                    if !is_new {
                        return Err(broken("a cursor is repeated"));
                    }
                    cursor = Some(next);
                }
                _ => return Ok((all.into(), ttl)),
            }
        }
        Err(broken("it has too many pages"))
    }

    /// Passes an announcement on.
    pub(super) fn noticed(&self, notice: ServerNotice) {
        let changed: &[AssetKind] = match notice {
            ServerNotice::PromptsChanged => &[AssetKind::Prompts],
            ServerNotice::ResourcesChanged => &[AssetKind::Resources, AssetKind::Templates],
            _ => &[],
        };
        for kind in changed {
            self.state().assets.announce(*kind);
        }
        self.announce(notice);
    }

    /// Sends an announcement to its receivers.
    pub(super) fn announce(&self, notice: ServerNotice) {
        // Without a receiver it is of no use.
        let _ = self.shared().notices.send((self.whose().clone(), notice));
    }
}

fn text_len(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_len).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| key.len() + text_len(value)).sum()
        }
        _ => 4,
    }
}

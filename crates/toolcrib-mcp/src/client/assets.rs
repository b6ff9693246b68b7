//! A server's offers beside tools: prompts, resources and their templates, as it lists them.

use std::{collections::HashSet, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout};
use toolcrib_core::{CancellationToken, PinKind, PinnedDefinition, ToolError};

use super::{
    McpClient,
    call::{failure, not_available},
    pages::ends_at,
    request::{McpRequest, plain},
    skills::is_of_scheme,
    supervisor::Supervisor,
};
use crate::connection::{RequestError, ServerNotice};

/// The limits of a list, as for tools.
const MOST_PAGES: usize = 1_000;
const MOST_ITEMS: usize = 10_000;
const MOST_CHARS: usize = 16 * 1024 * 1024;

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
    fn method(self) -> &'static str {
        match self {
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
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
struct Slot {
    last: Option<CachedList>,
    /// The number of announced changes.
    announced: u64,
}

#[derive(Clone)]
struct CachedList {
    items: Items,
    epoch: u64,
    announced: u64,
    expires: Option<Instant>,
}

impl Assets {
    fn slot(&mut self, kind: AssetKind) -> &mut Slot {
        let [prompts, resources, templates] = &mut self.0;
        match kind {
            AssetKind::Prompts => prompts,
            AssetKind::Resources => resources,
            AssetKind::Templates => templates,
        }
    }

    fn fresh(&mut self, kind: AssetKind, epoch: u64) -> Option<Items> {
        let slot = self.slot(kind);
        let last = slot.last.as_ref()?;
        let is_fresh = last.epoch == epoch
            && last.announced == slot.announced
            && last.expires.is_none_or(|expires| expires > Instant::now());
        is_fresh.then(|| Arc::clone(&last.items))
    }

    fn last(&mut self, kind: AssetKind) -> Option<Items> {
        self.slot(kind).last.as_ref().map(|last| Arc::clone(&last.items))
    }

    fn announce(&mut self, kind: AssetKind) {
        self.slot(kind).announced += 1;
    }
}

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
                    .caused_by(std::io::Error::other(format!("no answer within {allowed:?}")))
            })
        })
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
        let is_offered = match kind {
            AssetKind::Prompts => capabilities.prompts.is_some(),
            AssetKind::Resources | AssetKind::Templates => capabilities.resources.is_some(),
        };
        if !is_offered {
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
        let last =
            CachedList { items: Arc::clone(&items), epoch: live.epoch(), announced, expires };
        self.state().assets.slot(kind).last = Some(last);
        Ok(items)
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
            let mut page = plain(
                self,
                McpRequest {
                    method,
                    params: Arc::new(Map::from_iter(params)),
                    on_progress: None,
                    client: None,
                    cancellation: CancellationToken::new(),
                },
            )
            .await?;
            let Some(Value::Array(items)) = page.remove(field) else {
                return Err(broken("the list is missing"));
            };
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

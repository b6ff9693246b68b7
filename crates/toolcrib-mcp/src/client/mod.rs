//! One server as a tool provider.

mod asset_lists;
mod assets;
mod builder;
mod call;
mod error;
mod failures;
mod flight;
mod listed;
mod listing;
mod live;
mod pages;
mod request;
mod scope;
mod sessions;
mod settings;
mod shared;
mod skills;
mod state;
mod status;
mod supervisor;

use std::{future::pending, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use toolcrib_core::{
    BoxFuture, Catalog, ClientAbilities, DiscoveryError, DiscoveryErrorClass, Identity,
    ListContext, Listing, ListingInfo, Tool, ToolProvider,
};

#[cfg(feature = "mock")]
pub use self::builder::pipe_mcp_client;
pub use self::{
    asset_lists::AssetKind,
    builder::{McpClientBuilder, mcp_client},
    error::McpError,
    request::{McpRequest, Notices, ServerOffers},
    settings::{Handshake, SessionScope},
    skills::{MOST_SKILL_BYTES, MOST_SKILL_DESCRIPTION, MOST_SKILL_FILES, is_skill_name},
    state::Subscribed,
    status::{ServerState, ServerStatus, StateChange, UnmatchedPattern},
};
use self::{
    listed::ServerListing,
    listing::ListState,
    scope::IdentityScope,
    sessions::{SessionLease, Sessions},
};
use crate::oauth::Authorization;
pub use crate::server::name::{InvalidServerNameError, ServerName};

/// The client of one MCP server: a provider of its tools that also calls them.
///
/// Clones share it. It has a session with the server for each tenant and principal that uses it,
/// unless [`session`](McpClientBuilder::session) is set otherwise: each session has a separate
/// connection, which for a program means a process. A session connects when its tools are first
/// needed, and again after its connection was lost. After a failure it backs off, and requests
/// meanwhile fail at once.
///
/// A call runs in the session of the calling identity, whichever session listed the tool.
///
/// Keep it for as long as its tools are used: with the last clone all connections and processes
/// end, and later calls return `not_available`.
#[derive(Clone)]
pub struct McpClient {
    owner: Arc<Owner>,
    /// The session that its own methods use.
    whose: IdentityScope,
}

/// Ends everything when the last client is dropped.
struct Owner(Arc<Sessions>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The code of sources that need another identity.
const IDENTITY_MISSING: &str = "identity_missing";

impl McpClient {
    fn new(sessions: Arc<Sessions>) -> Self {
        Self { owner: Arc::new(Owner(sessions)), whose: IdentityScope::default() }
    }

    fn sessions(&self) -> &Sessions {
        &self.owner.0
    }

    fn session(&self) -> Result<SessionLease, McpError> {
        self.sessions().of(&self.whose)
    }

    /// The same client, whose methods use the session of this identity. Default: that of no tenant
    /// and no principal. As a provider it uses the identity of each listing in any case.
    #[must_use]
    pub fn on_behalf_of(&self, identity: &Identity) -> Self {
        self.for_client(identity, ClientAbilities::default())
    }

    /// As [`on_behalf_of`](Self::on_behalf_of), for a client with these abilities.
    #[must_use]
    pub fn for_client(&self, identity: &Identity, abilities: ClientAbilities) -> Self {
        let whose = self.sessions().whose(identity, abilities);
        Self { owner: Arc::clone(&self.owner), whose }
    }

    /// The login of its identity, if it may use OAuth.
    pub fn authorization(&self) -> Option<Authorization> {
        let authority = self.sessions().shared().authority.clone()?;
        let client = self.clone();
        let list_tools = Box::new(move || -> BoxFuture<'static, Result<(), String>> {
            let client = client.clone();
            Box::pin(
                async move { client.catalog().await.map(drop).map_err(|error| error.to_string()) },
            )
        });
        Some(Authorization::new(authority, self.whose.owner(), list_tools))
    }

    /// The name of a tool here, by its own name on the server: that of
    /// [`rename`](McpClientBuilder::rename), if there is one.
    pub fn tool_name(&self, own: &str) -> String {
        self.name().tool_name(self.sessions().shared().settings.name_of(own))
    }

    /// The name that clients and models use for a prompt of the server, and for its tool that loads
    /// skills.
    #[doc(hidden)]
    pub fn exposed_name(&self, own: &str) -> String {
        self.name().tool_name(own)
    }

    /// The operator's name of the server.
    pub fn name(&self) -> &ServerName {
        &self.sessions().shared().name
    }

    /// The offered tools, sorted by the server's own names: from the last listing while it is
    /// valid, else from the server, which is started or connected if needed.
    ///
    /// # Errors
    /// [`McpError`] with the cause, and the time of the next attempt.
    pub async fn tools(&self) -> Result<Vec<Tool>, McpError> {
        Ok(self.session()?.list().await?.catalog().offered().to_vec())
    }

    /// The offered and the withheld tools, listed like [`tools`](Self::tools).
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn catalog(&self) -> Result<Catalog, McpError> {
        Ok(self.session()?.list().await?.catalog().clone())
    }

    /// The offered tools, queried from the server in any case.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn refresh(&self) -> Result<Vec<Tool>, McpError> {
        Ok(self.session()?.list_anew().await?.catalog().offered().to_vec())
    }

    /// The present state of its session with the server. Without a session, that of the most
    /// recently used one.
    pub fn status(&self) -> ServerStatus {
        self.sessions().shown(&self.whose).status()
    }

    /// The patterns of `include` and `exclude`, and the names in `allowed-tools` of its skills, that
    /// match no tool of its session's last listing: probable mistakes. None before the first listing.
    pub fn unmatched_patterns(&self) -> Vec<UnmatchedPattern> {
        self.sessions().shown(&self.whose).unmatched()
    }

    /// Ticks when the list of one of the sessions may have changed: the server announced it, it
    /// cannot be listed, it may be retried, or it is back. For consumers that must know of a change
    /// before they request the list.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.sessions().shared().changes.subscribe()
    }

    /// Ends the sessions that only this conversation uses, with their processes, because it has ended;
    /// see [`SessionScope::Client`]. Without waiting. A later use begins another session.
    pub fn end_conversation(&self, conversation: &Identity) {
        self.sessions().end_conversation(conversation);
    }

    /// Lists all sessions again, because the pins of its definitions have changed. Without waiting.
    pub fn recheck(&self) {
        self.sessions().recheck();
    }

    /// Ends all sessions and waits until all their processes and tasks have ended. From then on
    /// every request fails with an error that the client is closed. A program that was just being
    /// started is killed and not awaited.
    pub async fn close(&self) {
        self.sessions().close().await;
    }
}

toolcrib_core::__internal::debug_fields!(McpClient, client, client.status());

impl ToolProvider for McpClient {
    fn id(&self) -> &str {
        &self.sessions().shared().origin
    }

    fn covers(&self) -> Option<&str> {
        Some(&self.sessions().shared().pattern)
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        let can = cx.client_abilities(self.name().as_str());
        let session = match self.sessions().of(&self.sessions().whose(cx.identity(), can)) {
            Ok(session) => session,
            Err(error) => return Listing::failed(not_listed(error)),
        };
        let whose = Sessions::conversation(cx.identity());
        match session.known() {
            ListState::Fresh(list) => Listing::now(self.listed(&session, &list, &whose)),
            ListState::Failed(error) => Listing::failed(DiscoveryError::source_failed(error)),
            known @ (ListState::Ask | ListState::Renewing(..)) => {
                let cancellation = cx.cancellation().clone();
                let until = cx.wait_limit().map(|limit| session.state().awaited_until(limit));
                Listing::later(async move {
                    let listed = async {
                        match known {
                            ListState::Renewing(before, flight) => {
                                session.renewed(before, flight).await
                            }
                            _ => session.list_for_menu().await,
                        }
                    };
                    tokio::select! {
                        biased;
                        () = cancellation.cancelled() => Err(DiscoveryError::cancelled()),
                        listed = listed => listed
                            .map(|list| self.listed(&session, &list, &whose))
                            .map_err(DiscoveryError::source_failed),
                        () = is_over(until) => Err(too_late()),
                    }
                })
            }
        }
    }
}

impl McpClient {
    /// A list, with the time for which it applies. A gate of skills may change it at any time.
    fn listed(
        &self,
        session: &SessionLease,
        list: &ServerListing,
        whose: &IdentityScope,
    ) -> Catalog {
        let fresh_for = match list.has_gates() {
            true => Duration::ZERO,
            false => session.state().fresh_for(),
        };
        let info = ListingInfo { fresh_for, ..ListingInfo::default() };
        self.sessions().catalog(list, whose).with_listing_info(info)
    }
}

/// Done at a time; never without one.
async fn is_over(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => pending().await,
    }
}

fn too_late() -> DiscoveryError {
    DiscoveryError::new(DiscoveryErrorClass::Timeout, "it did not answer in time")
}

/// Breakers must not count a caller without access: it says nothing about the server.
fn not_listed(error: McpError) -> DiscoveryError {
    let is_of_caller = matches!(error, McpError::NoAccess { .. });
    let error = DiscoveryError::source_failed(error);
    if is_of_caller { error.with_code(IDENTITY_MISSING) } else { error }
}

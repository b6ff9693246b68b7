//! One server as a provider of tools.

mod backoff;
mod builder;
mod call;
mod error;
mod flight;
mod listed;
mod listing;
mod live;
mod name;
mod pages;
mod sessions;
mod shared;
mod state;
mod status;
mod supervisor;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use tokio::sync::watch;
use toolcrib_core::{
    Catalog, DiscoveryError, DiscoveryErrorClass, FailedListing, Identity, ListContext, Listing,
    Tool, ToolProvider,
};

#[cfg(feature = "mock")]
pub(crate) use self::builder::Reach;
pub use self::{
    builder::{McpClientBuilder, mcp_client},
    error::McpError,
    name::{InvalidServerName, ServerName},
    status::{ServerState, ServerStatus, StateChange, UnmatchedPattern},
};
use self::{
    listing::Known,
    sessions::{InSession, Sessions, Whose},
};

/// The client of one MCP server: a provider of its tools, and what calls them.
///
/// Cloning shares it. It has a session with the server for each tenant and principal that uses it,
/// unless [`shared_session`](McpClientBuilder::shared_session) is declared: each session has a
/// connection of its own, which for a program means a process. A session connects when its tools are
/// first needed, and again when its connection was lost. After a failure it is left alone for a
/// while, and whoever needs it meanwhile gets the error at once.
///
/// A call runs in the session of the identity that calls, whoever listed the tool.
///
/// Keep it for as long as its tools are used: with the last clone all connections and processes end,
/// and what is called then answers `not_available`.
#[derive(Clone)]
pub struct McpClient {
    owner: Arc<Owner>,
    /// Whose session its own methods mean.
    whose: Whose,
}

/// What ends everything when the last client goes.
struct Owner(Arc<Sessions>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl McpClient {
    fn new(sessions: Arc<Sessions>) -> Self {
        Self { owner: Arc::new(Owner(sessions)), whose: Whose::default() }
    }

    fn sessions(&self) -> &Sessions {
        &self.owner.0
    }

    fn session(&self) -> Result<InSession, McpError> {
        self.sessions().of(&self.whose)
    }

    /// The same client, whose methods use the session of this identity. Default: that of no tenant
    /// and no principal. As a provider it goes by the identity of each listing in any case.
    #[must_use]
    pub fn on_behalf_of(&self, identity: &Identity) -> Self {
        Self { owner: Arc::clone(&self.owner), whose: self.sessions().whose(identity) }
    }

    /// What the server is called here.
    pub fn name(&self) -> &ServerName {
        &self.sessions().shared().name
    }

    /// The tools that are offered, sorted by the server's own names: from the last listing as long
    /// as it holds, else the server is asked. It is started or dialled where that is needed.
    ///
    /// # Errors
    /// [`McpError`] says why there is no list, and when the server may be tried again.
    pub async fn tools(&self) -> Result<Vec<Tool>, McpError> {
        Ok(self.session()?.list().await?.offered().to_vec())
    }

    /// What is offered and what is held back, got as [`tools`](Self::tools) gets it.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn catalog(&self) -> Result<Catalog, McpError> {
        let mut catalog = Catalog::new();
        self.session()?.list().await?.fill(&mut catalog);
        Ok(catalog)
    }

    /// The tools that are offered, asking the server in any case.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn refresh(&self) -> Result<Vec<Tool>, McpError> {
        Ok(self.session()?.list_anew().await?.offered().to_vec())
    }

    /// Where its session with the server stands now. Where there is no such session, that of the one
    /// that was used last.
    pub fn status(&self) -> ServerStatus {
        self.sessions().shown(&self.whose).status()
    }

    /// The patterns of `include` and `exclude` that match no tool of its session's last listing:
    /// probably slips. None before there was a listing.
    pub fn unmatched_patterns(&self) -> Vec<UnmatchedPattern> {
        self.sessions().shown(&self.whose).unmatched()
    }

    /// Ticks when the list of one of the sessions may be another: the server said so, it cannot be
    /// had, it may be tried again, or it is back. For whoever must hear of a change before asking for
    /// the list.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.sessions().shared().changes.subscribe()
    }

    /// Ends all sessions and waits until no process and no task of them is left. From then on
    /// everything answers that the client is closed. A program that was just being started is killed
    /// and not waited for.
    pub async fn close(&self) {
        self.sessions().close().await;
    }
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("McpClient").field(&self.status()).finish()
    }
}

impl ToolProvider for McpClient {
    fn id(&self) -> &str {
        &self.sessions().shared().origin
    }

    fn covers(&self) -> Option<&str> {
        Some(&self.sessions().shared().pattern)
    }

    fn list(self: Arc<Self>, cx: &ListContext, mut into: Catalog) -> Listing {
        let session = match self.sessions().of(&self.sessions().whose(cx.identity())) {
            Ok(session) => session,
            Err(error) => return Listing::failed(into, DiscoveryError::source_failed(error)),
        };
        match session.known() {
            Known::Fresh(list) => {
                list.fill(&mut into);
                Listing::now(into)
            }
            Known::Failed(error) => Listing::failed(into, DiscoveryError::source_failed(error)),
            known @ (Known::Ask | Known::Renewing(..)) => {
                let cancellation = cx.cancellation().clone();
                Listing::later(async move {
                    let listed = async {
                        match known {
                            Known::Renewing(before, flight) => {
                                session.renewed(before, flight).await
                            }
                            _ => session.list_for_menu().await,
                        }
                    };
                    let listed = tokio::select! {
                        biased;
                        () = cancellation.cancelled() => Err(DiscoveryError::new(
                            DiscoveryErrorClass::Cancelled,
                            "the run was cancelled",
                        )),
                        listed = listed => listed.map_err(DiscoveryError::source_failed),
                    };
                    match listed {
                        Ok(list) => {
                            list.fill(&mut into);
                            Ok(into)
                        }
                        Err(error) => Err(FailedListing { error, catalog: into }),
                    }
                })
            }
        }
    }
}

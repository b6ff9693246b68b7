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
mod state;
mod status;
mod supervisor;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use tokio::sync::watch;
use toolcrib_core::{
    Catalog, DiscoveryError, DiscoveryErrorClass, FailedListing, ListContext, Listing, Tool,
    ToolProvider,
};

#[cfg(feature = "mock")]
pub(crate) use self::builder::Reach;
pub use self::{
    builder::{McpClientBuilder, mcp_client},
    error::McpError,
    name::{InvalidServerName, ServerName},
    status::{ServerState, ServerStatus, StateChange, UnmatchedPattern},
};
use self::{listing::Known, supervisor::Supervisor};

/// The client of one MCP server: a provider of its tools, and what calls them.
///
/// Cloning shares it. It keeps at most one connection, which is opened when the tools are first
/// asked for, and opened again when it was lost. A server that fails is left alone for a while, and
/// whoever asks for it meanwhile is told at once, so that it costs others nothing.
///
/// Keep it for as long as its tools are used: with the last clone go connection and process, and
/// what is called then answers `not_available`.
#[derive(Clone)]
pub struct McpClient(Arc<Owner>);

/// What ends everything when the last client goes.
struct Owner(Arc<Supervisor>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl McpClient {
    fn new(supervisor: Arc<Supervisor>) -> Self {
        Self(Arc::new(Owner(supervisor)))
    }

    /// What the server is called here.
    pub fn name(&self) -> &ServerName {
        self.0.0.name()
    }

    /// The tools that are offered, sorted by the server's own names: from the last listing as long
    /// as it holds, else the server is asked. It is started or dialled where that is needed.
    ///
    /// # Errors
    /// [`McpError`] says why there is no list, and when the server may be tried again.
    pub async fn tools(&self) -> Result<Vec<Tool>, McpError> {
        Ok(self.0.0.list().await?.offered().to_vec())
    }

    /// What is offered and what is held back, got as [`tools`](Self::tools) gets it.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn catalog(&self) -> Result<Catalog, McpError> {
        let mut catalog = Catalog::new();
        self.0.0.list().await?.fill(&mut catalog);
        Ok(catalog)
    }

    /// The tools that are offered, asking the server in any case.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn refresh(&self) -> Result<Vec<Tool>, McpError> {
        Ok(self.0.0.list_anew().await?.offered().to_vec())
    }

    /// Where the client stands with its server, now.
    pub fn status(&self) -> ServerStatus {
        self.0.0.status()
    }

    /// The patterns of `include` and `exclude` that match no tool of the last listing: probably slips.
    /// None before there was a listing.
    pub fn unmatched_patterns(&self) -> Vec<UnmatchedPattern> {
        self.0.0.unmatched()
    }

    /// Ticks when the list may be another: the server said so, it cannot be had, it may be tried
    /// again, or it is back. For whoever must hear of a change before asking for the list.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.0.changes()
    }

    /// Ends the connection and waits until no process and no task of it is left. From then on
    /// everything answers that the client is closed. A program that was just being started is killed
    /// and not waited for.
    pub async fn close(&self) {
        self.0.0.close().await;
    }
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("McpClient").field(&self.status()).finish()
    }
}

impl ToolProvider for McpClient {
    fn id(&self) -> &str {
        self.0.0.origin()
    }

    fn covers(&self) -> Option<&str> {
        Some(self.0.0.pattern())
    }

    fn list(self: Arc<Self>, cx: &ListContext, mut into: Catalog) -> Listing {
        match self.0.0.known() {
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
                                self.0.0.renewed(before, flight).await
                            }
                            _ => self.0.0.list().await,
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

//! Name resolution.

use std::{io, net::IpAddr};

use futures_util::future::BoxFuture;

/// A source of addresses. Queried once for a request and once more for each of its redirects, but
/// not for a host that is an address or with an open connection; its addresses are checked before
/// they are dialed.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of a name, in the order of preference. The name is in ASCII, in lower case and
    /// without a final dot.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver, with its hosts file and search domains.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    #[expect(clippy::disallowed_methods, reason = "this is where names are looked up")]
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            // It needs a port and does not use it.
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

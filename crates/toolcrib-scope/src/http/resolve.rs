//! From a name to its addresses.

use std::{io, net::IpAddr};

use futures_util::future::BoxFuture;

/// Where the addresses of a name come from. Asked once for a request and once more for each of
/// its redirects, and not at all where the host is an address or a connection is open; what it
/// answers is judged before it is dialled.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of a name, in the order in which they should be tried. The name is in ASCII,
    /// in lower case and without a dot at its end.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The system's own resolver, its hosts file and its search domains included.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    #[expect(clippy::disallowed_methods, reason = "this is where names are looked up")]
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            // It wants a port and does nothing with it.
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

//! Servers over Streamable HTTP.

mod client;
mod events;
mod failure;
mod names;
mod response;
mod streams;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolcrib_capabilities::http::{
    AllowedAddress, HeaderMap, HostPattern, HttpClient, HttpClientBuilder, Url, header,
};

use self::client::Client;
pub(crate) use self::names::MarkedArguments;
use super::{
    Connector,
    transport::{CallerContext, Dial, RawConnection, Wiring},
    types::ConnectError,
};
use crate::{
    oauth::{Authority, OAuth, fetch::local_addresses},
    server::{CallerAccess, Http, InvalidServerError, http::checked},
};

/// Connections to a server over Streamable HTTP. They share their HTTP connections.
///
/// A server with its own `Authorization` header needs no other tokens.
pub(crate) fn http(
    server: &str,
    http: &Http,
) -> Result<(Arc<Connector>, Option<Arc<Authority>>), InvalidServerError> {
    let (url, headers) = checked(server, http)?;
    let invalid = |problem: String| InvalidServerError::Url { server: server.to_owned(), problem };
    let host = url.host_str().unwrap_or_default();
    let pattern: HostPattern =
        host.parse().map_err(|_| invalid("its host is not a valid name".into()))?;
    let mut builder = match &http.client {
        Some(builder) => HttpClientBuilder::clone(builder),
        None => HttpClient::builder(),
    };
    if !local_addresses(&url).is_empty() {
        // The declaration of the server names this machine, and the client requests no other host.
        builder = builder.allow_addresses(loopback());
    }
    let client = builder.build();
    let is_local = !local_addresses(&url).is_empty();
    let is_encrypted = url.scheme() == "https" || is_local;
    let settings = http.oauth.clone().filter(|_| !headers.contains_key(header::AUTHORIZATION));
    if let Some(problem) = settings.as_ref().and_then(OAuth::problem) {
        return Err(InvalidServerError::OAuth { server: server.to_owned(), problem });
    }
    // Without encryption, no token is sent.
    let authority = settings
        .filter(|_| is_encrypted)
        .map(|settings| Authority::new(server, url.clone(), settings, client.clone(), is_local));
    let path = url.path().replace("%7B", "{").replace("%7D", "}");
    let server = Server {
        name: server.to_owned(),
        target: format!("{}{path}", url.origin().ascii_serialization()),
        url,
        http: http.clone(),
        client: client.only([pattern]),
        authority: authority.clone(),
    };
    Ok((Connector::new(server), authority))
}

struct Server {
    name: String,
    target: String,
    /// As declared.
    url: Url,
    http: Http,
    client: HttpClient,
    authority: Option<Arc<Authority>>,
}

impl Server {
    /// The URL and the headers of a caller.
    fn of_caller(&self, access: &CallerAccess) -> Result<(Url, HeaderMap), InvalidServerError> {
        let (url, headers) = checked(&self.name, &self.http.for_caller(access))?;
        let depth = |url: &Url| url.path_segments().map(Iterator::count);
        // Whatever formed the URL, credentials reach no other place.
        let is_same = url.origin() == self.url.origin()
            && (url.query(), url.fragment()) == (self.url.query(), self.url.fragment())
            && depth(&url) == depth(&self.url);
        if !is_same {
            let problem = "the URL of this caller leaves its place in the path".to_owned();
            return Err(InvalidServerError::Url { server: self.name.clone(), problem });
        }
        Ok((url, headers))
    }
}

impl Dial for Server {
    fn target(&self) -> &str {
        &self.target
    }

    fn dial(
        &self,
        wiring: Wiring,
        caller: CallerContext<'_>,
    ) -> BoxFuture<'static, Result<RawConnection, ConnectError>> {
        let (http, of_caller) = (self.client.clone(), self.of_caller(caller.access));
        // A login is one at the declared URL, and a caller's own header needs none.
        let login = |headers: &HeaderMap| {
            let authority = self.authority.as_ref()?;
            let is_own = caller.access.url.is_some() || headers.contains_key(header::AUTHORIZATION);
            (!is_own).then(|| authority.access(caller.owner))
        };
        let dialed = of_caller.map(|(url, headers)| {
            let login = login(&headers);
            let client = Client::new(http, url.as_str().into(), headers, login, wiring);
            let transport = Arc::new(client);
            let serving = Box::pin(Arc::clone(&transport).serve());
            RawConnection { transport, serving }
        });
        Box::pin(async move {
            dialed.map_err(|error| ConnectError {
                problem: error.to_string(),
                source: Some(error.into()),
            })
        })
    }
}

fn loopback() -> impl Iterator<Item = AllowedAddress> {
    ["127.0.0.0/8", "::1/128"].into_iter().filter_map(|net| net.parse().ok())
}

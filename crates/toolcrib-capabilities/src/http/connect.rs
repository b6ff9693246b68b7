//! Opens a connection to a target: resolves once, checks every address, dials the checked ones.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    body::Bytes,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::AbortHandle,
    time::timeout,
};
use tokio_rustls::rustls::pki_types::ServerName;
use url::Host;

use super::{
    address::{self, PortOrigin, RefusedTarget},
    allowed::AllowedAddress,
    error::HttpError,
    resolve::Resolve,
    target::Target,
    tls::Tls,
};

/// The limit of response headers.
pub const MAX_HEADERS: usize = 100;

/// The size limit of the response headers, and of trailers of a chunked body: 64 KiB.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The limit of dialed addresses of a name.
const MAX_DIALED: usize = 8;

/// Opens connections.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) allowed: Vec<AllowedAddress>,
    pub(crate) connect_timeout: Duration,
    pub(crate) tls: Arc<Tls>,
}

impl Connector {
    pub(crate) async fn connect(
        &self,
        target: &Target,
        way: PortOrigin,
    ) -> Result<Connection, HttpError> {
        let tcp = self.open(target, way).await?;
        if !target.https {
            return handshake(target, tcp).await;
        }
        let connector = self.tls.connector().await?;
        let failed = |source| HttpError::Tls { host: target.host.clone(), source };
        let name = server_name(target).map_err(failed)?;
        let secured = timeout(self.connect_timeout, connector.connect(name, tcp)).await;
        let tls =
            secured.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(failed)?;
        handshake(target, tls).await
    }

    /// A connection without TLS.
    pub(crate) async fn open(
        &self,
        target: &Target,
        way: PortOrigin,
    ) -> Result<TcpStream, HttpError> {
        let addresses = self.addresses(target, way).await?;
        let failed =
            |source| HttpError::Connect { host: target.host.clone(), port: target.port, source };
        let tcp = self.dial(&addresses, target.port).await.map_err(failed)?;
        // A request is one write; waiting for more only delays it.
        tcp.set_nodelay(true).map_err(failed)?;
        Ok(tcp)
    }

    async fn addresses(&self, target: &Target, way: PortOrigin) -> Result<Vec<IpAddr>, HttpError> {
        let host = || target.host.clone();
        let found = match target.url.host() {
            Some(Host::Ipv4(address)) => vec![IpAddr::V4(address)],
            Some(Host::Ipv6(address)) => vec![IpAddr::V6(address)],
            _ => self
                .resolver
                .resolve(&target.host)
                .await
                .map_err(|source| HttpError::Resolve { host: host(), source })?,
        };
        if found.is_empty() {
            let source = io::Error::new(io::ErrorKind::NotFound, "it has no address");
            return Err(HttpError::Resolve { host: host(), source });
        }
        let found: Vec<IpAddr> = found.into_iter().map(address::canonical).collect();
        for &ip in &found {
            let address = SocketAddr::new(ip, target.port);
            address::judge(address, way, &self.allowed).map_err(|refused| match refused {
                RefusedTarget::Address(why) => {
                    HttpError::AddressRefused { host: host(), address: ip, why }
                }
                RefusedTarget::Port => HttpError::PortRefused { host: host(), address },
            })?;
        }
        Ok(found)
    }

    /// One after the other; each has a part of the timeout.
    #[expect(clippy::disallowed_methods, reason = "this is where the network is dialed")]
    async fn dial(&self, addresses: &[IpAddr], port: u16) -> io::Result<TcpStream> {
        let tried = addresses.iter().take(MAX_DIALED);
        let each = self.connect_timeout / u32::try_from(tried.len()).unwrap_or(1).max(1);
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for &address in tried {
            match timeout(each, TcpStream::connect(SocketAddr::new(address, port))).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failure = error,
                Err(_) => failure = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(failure)
    }
}

fn server_name(target: &Target) -> io::Result<ServerName<'static>> {
    match target.url.host() {
        Some(Host::Ipv4(address)) => Ok(ServerName::from(IpAddr::V4(address))),
        Some(Host::Ipv6(address)) => Ok(ServerName::from(IpAddr::V6(address))),
        _ => ServerName::try_from(target.host.clone()).map_err(io::Error::other),
    }
}

async fn handshake<S>(target: &Target, stream: S) -> Result<Connection, HttpError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    // `MAX_HEADERS` is hyper's default; setting it explicitly costs each response.
    let (sender, connection) = http1::Builder::new()
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(MAX_HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| HttpError::Connect {
            host: target.host.clone(),
            port: target.port,
            source: io::Error::other(error),
        })?;
    // Its errors reach the task that waits for a response.
    let driver = tokio::spawn(async move { drop(connection.await) }).abort_handle();
    Ok(Connection { sender, driver })
}

/// An open connection. Dropping it closes it, with its request in progress.
pub(crate) struct Connection {
    pub(crate) sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

//! Connections: addresses, TLS, and the limit of received bytes.

#![allow(clippy::disallowed_methods, reason = "this is where tools' databases come from")]

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
    time::timeout,
};
use tokio_postgres::{
    AsyncMessage, CancelToken, Client, Config, NoTls,
    config::{Host, SslMode},
    tls::{MakeTlsConnect, TlsConnect},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::functions::Notices;
use crate::certificates::client_config;

/// TLS to one host.
type Tls = <MakeRustlsConnect as MakeTlsConnect<MeteredSocket>>::TlsConnect;

/// The time limit of a connection, of TLS and of the login, together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit of a request to cancel; `statement_timeout` ends the statement otherwise.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// The limit of received bytes per call: 16 MiB. The driver has no limit for a single row, and one
/// expression can make a value of 1 GB.
pub(super) const MAX_RECEIVED: usize = 16 * 1024 * 1024;

const DEFAULT_PORT: u16 = 5432;

/// The text of the error for more than [`MAX_RECEIVED`].
const TOO_MUCH: &str = "more was received than the limit of a call";

pub(super) type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The address of a server and the way to it.
pub(super) struct Server {
    config: Config,
    hosts: Vec<(Host, u16)>,
    tls: OnceLock<MakeRustlsConnect>,
}

/// An open connection.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) notices: Notices,
    /// The bytes that may still be received.
    allowance: Arc<AtomicUsize>,
    /// The host that it leads to, for requests to cancel.
    host: usize,
}

impl Server {
    /// Reads a URL. `sslmode=disable` in it permits a connection without TLS; in all other modes a
    /// TCP connection has TLS with a verified certificate.
    pub(super) fn new(url: &str) -> Result<Self, AnyError> {
        // The driver does not know these modes, which are what it always does here.
        let url = url.replace("sslmode=verify-full", "sslmode=require");
        let mut config: Config = url.replace("sslmode=verify-ca", "sslmode=require").parse()?;
        if config.get_ssl_mode() == SslMode::Prefer {
            config.ssl_mode(SslMode::Require);
        }
        config.application_name(concat!("toolcrib/", env!("CARGO_PKG_VERSION")));
        let ports = config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(DEFAULT_PORT);
        let hosts = config.get_hosts().iter().cloned().enumerate();
        let hosts: Vec<_> = hosts.map(|(at, host)| (host, port(at))).collect();
        if hosts.is_empty() {
            return Err("it names no host".into());
        }
        Ok(Self { config, hosts, tls: OnceLock::new() })
    }

    /// The servers, without user and password.
    pub(super) fn shown(&self) -> String {
        let shown = |(host, port): &(Host, u16)| match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(folder) => folder.display().to_string(),
        };
        let hosts: Vec<_> = self.hosts.iter().map(shown).collect();
        format!("{}/{}", hosts.join(","), self.database())
    }

    /// The name of the database.
    pub(super) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_default()
    }

    /// Connects to the first host that answers.
    pub(super) async fn connect(&self) -> Result<Connection, AnyError> {
        let mut last = None;
        for host in 0..self.hosts.len() {
            match timeout(CONNECT_TIMEOUT, self.connect_to(host)).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => last = Some(error),
                Err(_) => {
                    let seconds = CONNECT_TIMEOUT.as_secs();
                    last = Some(format!("no answer within {seconds} s").into());
                }
            }
        }
        Err(last.unwrap_or_else(|| "it names no host".into()))
    }

    async fn connect_to(&self, host: usize) -> Result<Connection, AnyError> {
        let (socket, tls) = self.dial(host).await?;
        let allowance = Arc::clone(&socket.allowance);
        let mut config = self.config.clone();
        let (client, notices) = match tls {
            Some(tls) => log_in(&config, socket, tls).await?,
            None => log_in(config.ssl_mode(SslMode::Disable), socket, NoTls).await?,
        };
        Ok(Connection { client, notices, allowance, host })
    }

    /// Opens a socket to a host; without TLS if there is none in the result.
    async fn dial(&self, host: usize) -> Result<(MeteredSocket, Option<Tls>), AnyError> {
        let (host, port) = self.hosts.get(host).cloned().ok_or("it names no host")?;
        match host {
            Host::Unix(folder) => {
                let path = folder.join(format!(".s.PGSQL.{port}"));
                Ok((MeteredSocket::new(UnixStream::connect(path).await?), None))
            }
            Host::Tcp(name) => {
                let socket = TcpStream::connect((name.clone(), port)).await?;
                socket.set_nodelay(true)?;
                let tls = match self.config.get_ssl_mode() {
                    SslMode::Disable => None,
                    _ => Some(self.tls(&name).await?),
                };
                Ok((MeteredSocket::new(socket), tls))
            }
        }
    }

    async fn tls(&self, host: &str) -> Result<Tls, AnyError> {
        if self.tls.get().is_none() {
            // Some hundred files may have to be read.
            let config = tokio::task::spawn_blocking(|| client_config(Vec::new())).await??;
            let _ = self.tls.set(MakeRustlsConnect::new(config));
        }
        let mut tls = self.tls.get().cloned().ok_or("TLS is not configured")?;
        let made = MakeTlsConnect::<MeteredSocket>::make_tls_connect(&mut tls, host);
        made.map_err(|never| match never {})
    }

    /// Asks the server to cancel the statement of a connection.
    pub(super) async fn cancel(&self, token: CancelToken, host: usize) {
        // If it fails, the server's `statement_timeout` ends the statement.
        let _ = timeout(CANCEL_TIMEOUT, self.request_cancel(token, host)).await;
    }

    async fn request_cancel(&self, token: CancelToken, host: usize) -> Result<(), AnyError> {
        let (socket, tls) = self.dial(host).await?;
        match tls {
            Some(tls) => token.cancel_query_raw(socket, tls).await?,
            None => token.cancel_query_raw(socket, NoTls).await?,
        }
        Ok(())
    }
}

impl Connection {
    /// Permits the bytes of one more call.
    pub(super) fn permit_call(&self) {
        self.allowance.store(MAX_RECEIVED, Ordering::Relaxed);
    }

    /// Whether the limit of the call was the reason of an error.
    pub(super) fn is_exhausted(&self) -> bool {
        self.allowance.load(Ordering::Relaxed) == 0
    }

    pub(super) fn host(&self) -> usize {
        self.host
    }
}

/// Logs in over a socket, and drives the connection until the client is dropped.
async fn log_in<T>(
    config: &Config,
    socket: MeteredSocket,
    tls: T,
) -> Result<(Client, Notices), tokio_postgres::Error>
where
    T: TlsConnect<MeteredSocket, Stream: Send + 'static>,
{
    let (client, connection) = config.connect_raw(socket, tls).await?;
    let notices = Notices::default();
    tokio::spawn(collect(connection, notices.clone()));
    Ok((client, notices))
}

async fn collect<T>(mut connection: tokio_postgres::Connection<MeteredSocket, T>, notices: Notices)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
        if let AsyncMessage::Notice(notice) = message {
            notices.add(notice.detail());
        }
    }
}

/// A socket of TCP or of this machine.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// A socket that fails once a call has received more than its limit.
struct MeteredSocket {
    socket: Box<dyn Duplex>,
    /// The bytes that may still be received.
    allowance: Arc<AtomicUsize>,
}

impl MeteredSocket {
    fn new(socket: impl Duplex + 'static) -> Self {
        Self { socket: Box::new(socket), allowance: Arc::new(AtomicUsize::new(MAX_RECEIVED)) }
    }
}

impl AsyncRead for MeteredSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let outcome = Pin::new(&mut self.socket).poll_read(cx, into);
        let received = into.filled().len() - before;
        let left = self.allowance.load(Ordering::Relaxed).saturating_sub(received);
        self.allowance.store(left, Ordering::Relaxed);
        if received > 0 && left == 0 {
            return Poll::Ready(Err(io::Error::other(TOO_MUCH)));
        }
        outcome
    }
}

impl AsyncWrite for MeteredSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

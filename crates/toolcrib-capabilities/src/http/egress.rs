//! A proxy for programs without a network: each connection follows the rules of an HTTP client.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};

use toolcrib_core::NetworkRules;

use super::{
    address::PortOrigin,
    client::HttpClient,
    error::{HttpError, HttpErrorKind},
    host::{HostPattern, InvalidHostPatternError},
    target::{Target, invalid},
};

/// The size limit of the head of a proxy request: that of most servers.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The time for the head of a request to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The connections of one program at the same time; more wait. Package managers open about 50.
const MAX_CONNECTIONS: usize = 128;

/// The time to wait after a failed accept: mostly, the process has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The end of a head.
const END: &[u8] = b"\r\n\r\n";

/// The way to the network of a program that has none itself: an HTTP proxy in this process, for
/// tunnels (`CONNECT`) and plain `http` requests.
///
/// Each connection follows the rules of its [`HttpClient`]: the host is permitted, its name is
/// resolved once, and all its addresses are checked before one is dialed. The program follows
/// redirects itself, and each is a new connection. Cheap to clone; equal only to its clones.
#[derive(Clone)]
pub struct EgressProxy {
    client: Arc<HttpClient>,
    /// The hosts on other ports than the usual ones.
    ports: Arc<[(HostPattern, u16)]>,
}

impl EgressProxy {
    /// A proxy with the rules of a client, to the ports 80 and 443.
    pub fn new(client: HttpClient) -> Self {
        Self { client: Arc::new(client), ports: Arc::default() }
    }

    /// Also to these ports of these hosts, which the client has to permit too.
    #[must_use]
    pub fn ports(self, ports: impl IntoIterator<Item = (HostPattern, u16)>) -> Self {
        Self { ports: ports.into_iter().collect(), ..self }
    }

    fn check_port(&self, target: &Target) -> Result<(), HttpError> {
        let host = target.url.host();
        let is_named = |(pattern, port): &(HostPattern, u16)| {
            *port == target.port && host.as_ref().is_some_and(|host| pattern.admits(host))
        };
        if [80, 443].contains(&target.port) || self.ports.iter().any(is_named) {
            return Ok(());
        }
        Err(HttpError::HostNotAllowed { host: format!("{}:{}", target.host, target.port) })
    }

    /// The same proxy, restricted by these rules.
    ///
    /// # Errors
    /// [`InvalidHostPatternError`] for an invalid host pattern.
    pub fn within(&self, rules: &NetworkRules) -> Result<Self, InvalidHostPatternError> {
        let client = Arc::new(self.client.within(rules)?);
        Ok(Self { client, ports: Arc::clone(&self.ports) })
    }

    /// Serves the connections of one program until the future is dropped, which closes all of them. A
    /// program in a sandbox has this already; a host may serve others, such as containers.
    pub async fn serve(self, listener: TcpListener) {
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let proxy = self.clone();
                    connections.spawn(async move {
                        // Its end is visible to the program.
                        let _ = connection(&proxy, stream).await;
                        drop(slot);
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
            while connections.try_join_next().is_some() {}
        }
    }
}

toolcrib_core::__internal::debug_fields!(EgressProxy, proxy, proxy.client);

impl PartialEq for EgressProxy {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.client, &other.client)
    }
}

impl Eq for EgressProxy {}

/// A proxy request, read.
struct Request {
    target: Target,
    /// The head for the server; empty for a tunnel.
    head: Vec<u8>,
}

async fn connection(proxy: &EgressProxy, mut program: TcpStream) -> io::Result<()> {
    let Ok(read) = timeout(HEAD_TIMEOUT, read_head(&mut program)).await else { return Ok(()) };
    let Some((head, body)) = read? else {
        return refuse(&mut program, "400 Bad Request", "the request is not HTTP/1.1").await;
    };
    let request = match Request::parse(&head) {
        Ok(request) => request,
        Err(error) => return refuse(&mut program, "400 Bad Request", &error.to_string()).await,
    };
    let dialed = match proxy.check_port(&request.target) {
        Ok(()) => proxy.client.dial(&request.target).await,
        Err(refused) => Err(refused),
    };
    let mut server = match dialed {
        Ok(server) => server,
        Err(error) => return refuse(&mut program, status(&error), &error.to_string()).await,
    };
    if request.head.is_empty() {
        program.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    } else {
        server.write_all(&request.head).await?;
    }
    server.write_all(&body).await?;
    copy_bidirectional(&mut program, &mut server).await.map(drop)
}

/// The head, with its final blank line, and what came after it. `None` if it is too long or ends
/// early.
async fn read_head(program: &mut TcpStream) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut read = Vec::with_capacity(1024);
    loop {
        if let Some(at) = memchr::memmem::find(&read, END) {
            let body = read.split_off(at + END.len());
            return Ok(Some((read, body)));
        }
        if read.len() > MAX_HEAD_BYTES || program.read_buf(&mut read).await? == 0 {
            return Ok(None);
        }
    }
}

impl Request {
    fn parse(head: &[u8]) -> Result<Self, HttpError> {
        let broken = || invalid("the request of the program is not valid HTTP/1.1".to_owned());
        let head = str::from_utf8(head).map_err(|_| broken())?;
        let mut lines = head.strip_suffix("\r\n\r\n").ok_or_else(broken)?.split("\r\n");
        let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, "HTTP/1.1" | "HTTP/1.0"] = first.as_slice() else {
            return Err(broken());
        };
        if *method == "CONNECT" {
            return Ok(Self { target: authority(target)?, head: Vec::new() });
        }
        let target = Target::parse(target)?;
        if target.https {
            return Err(invalid("for https, a proxy request is a CONNECT".to_owned()));
        }
        let mut head = format!("{method} {} HTTP/1.1\r\n", target.path_and_query).into_bytes();
        head.extend_from_slice(b"Host: ");
        head.extend_from_slice(target.authority.as_bytes());
        head.extend_from_slice(b"\r\nConnection: close\r\n");
        for line in lines {
            let (name, _) = line.split_once(':').ok_or_else(broken)?;
            // A name with a space continues the line before; servers disagree about it. Other
            // separators of lines are not part of a value.
            if name.is_empty() || name.contains([' ', '\t']) || line.contains(['\r', '\n', '\0']) {
                return Err(broken());
            }
            if !is_of_connection(name) {
                head.extend_from_slice(line.as_bytes());
                head.extend_from_slice(b"\r\n");
            }
        }
        head.extend_from_slice(b"\r\n");
        Ok(Self { target, head })
    }
}

/// The target of a tunnel: a host and a port.
fn authority(text: &str) -> Result<Target, HttpError> {
    let has_port = text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    if !has_port || text.contains(['/', '\\', '?', '#', '@']) {
        return Err(invalid("the target of CONNECT is not a host with a port".to_owned()));
    }
    Target::parse(&format!("https://{text}/"))
}

/// Headers between the program and this proxy, and those that it sets itself.
fn is_of_connection(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(&*name, "host" | "connection" | "keep-alive" | "te" | "upgrade")
        || name.starts_with("proxy-")
}

fn status(error: &HttpError) -> &'static str {
    match error.kind() {
        HttpErrorKind::Refused => "403 Forbidden",
        _ => "502 Bad Gateway",
    }
}

async fn refuse(program: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let body = format!("toolcrib: {why}\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    program.write_all(answer.as_bytes()).await?;
    program.shutdown().await
}

impl HttpClient {
    /// An open connection to a target, under the rules of this client.
    async fn dial(&self, target: &Target) -> Result<TcpStream, HttpError> {
        self.admit(target)?;
        let way = PortOrigin { own_port: target.port, is_usual: true };
        self.connector().open(target, way).await
    }
}

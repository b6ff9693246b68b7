//! Networks and sockets of the host, and the proxy.
#![cfg(feature = "http")]

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, UdpSocket},
    os::unix::net::UnixListener,
    path::Path,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
};
use toolcrib_capabilities::{
    http::{EgressProxy, HttpClient, Resolve},
    process::{ProcessEnd, ProcessSpec, SandboxTier},
};
use toolcrib_skip::skip;

use crate::{
    sandbox::{Home, is_possible},
    support::{run, text},
};

/// A server of the host that answers each connection with `welcome`, and passes on what it reads.
struct Server {
    port: u16,
    heard: UnboundedReceiver<String>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, heard) = unbounded_channel();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = tell.send("connected".to_owned());
                let mut read = vec![0; 4096];
                let count = stream.read(&mut read).await.unwrap_or(0);
                let _ = tell.send(String::from_utf8_lossy(&read[..count]).into_owned());
                let _ = stream
                    .write_all(
                        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nwelcome",
                    )
                    .await;
            }
        });
        Self { port, heard, task }
    }

    /// What it has heard so far.
    fn heard(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Names and their addresses.
struct Names(HashMap<&'static str, Vec<IpAddr>>);

impl Resolve for Names {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        let found = self.0.get(host).cloned();
        Box::pin(async move { found.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

fn bash() -> &'static Path {
    let path = Path::new("/bin/bash");
    assert!(path.exists(), "these tests need bash");
    path
}

/// A script for bash, which can connect to a port.
fn script(home: &Home, tier: SandboxTier, script: &str) -> ProcessSpec {
    let mut spec = home.sh(tier, script);
    spec.program = bash().to_owned();
    spec
}

/// In `full`, with a proxy to `good.test`, which is the server, and to `private.test`, whose addresses
/// are not permitted.
fn with_proxy(home: &Home, server: &Server, text: &str) -> ProcessSpec {
    let mut spec = script(home, SandboxTier::Full, text);
    let names = Names(HashMap::from([
        ("good.test", vec!["127.0.0.1".parse().unwrap()]),
        ("evil.test", vec!["127.0.0.1".parse().unwrap()]),
        ("private.test", vec!["8.8.8.8".parse().unwrap(), "10.0.0.1".parse().unwrap()]),
        ("metadata.test", vec!["169.254.169.254".parse().unwrap()]),
    ]));
    let hosts = ["good.test", "private.test", "metadata.test"].map(|host| host.parse().unwrap());
    let client = HttpClient::builder()
        .allowed_hosts(Some(hosts.into()))
        .allow_addresses([format!("127.0.0.1:{}", server.port).parse().unwrap()])
        .resolver(names)
        .build();
    let ports = ["good.test", "private.test", "metadata.test", "evil.test"]
        .map(|host| (host.parse().unwrap(), server.port));
    spec.sandbox.network = Some(EgressProxy::new(client).ports(ports));
    spec
}

/// Sends a request to the proxy and prints its answer.
fn asks(request: &str) -> String {
    format!(
        "exec 3<>/dev/tcp/127.0.0.1/3128 || exit 9; printf '{request}' >&3; cat <&3; echo; env | \
         grep -c _proxy"
    )
}

#[tokio::test]
async fn no_server_of_this_machine_is_reached() {
    if !is_possible(SandboxTier::Full) {
        return;
    }
    let mut server = Server::new().await;
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let (port, udp) = (server.port, datagrams.local_addr().unwrap().port());
    let attack = format!(
        "(exec 3<>/dev/tcp/127.0.0.1/{port}; echo x >&3; cat <&3); \
         (exec 3<>/dev/tcp/::1/{port}); echo x > /dev/udp/127.0.0.1/{udp}; \
         (exec 3<>/dev/tcp/192.0.2.1/80); getent hosts example.com"
    );
    let home = Home::new();
    let finished = run(script(&home, SandboxTier::Full, &attack)).await.unwrap();
    assert_eq!(text(&finished.stdout), "");
    assert_eq!(server.heard(), Vec::<String>::new());
    assert!(datagrams.recv(&mut [0; 8]).is_err(), "a datagram came out");

    let attack =
        attack.replace("(exec 3<>/dev/tcp/192.0.2.1/80); getent hosts example.com", "true");
    let finished = run(script(&home, SandboxTier::Files, &attack)).await.unwrap();
    assert!(text(&finished.stdout).contains("welcome"), "no attack at all: {finished:?}");
    assert!(datagrams.recv(&mut [0; 8]).is_ok());
}

#[tokio::test]
async fn no_unix_socket_of_the_host_is_reached() {
    if !is_possible(SandboxTier::Full) {
        return;
    }
    if !Path::new("/usr/bin/perl").exists() {
        return skip("/usr/bin/perl is not installed");
    }
    let home = Home::new();
    // Even in a folder that the program may write.
    let path = home.project.join("out/socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let attack = "use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die \"no socket: $!\"; \
                  connect($s, pack_sockaddr_un($ARGV[0])) or die \"no connection: $!\"; print 'in'";
    for (tier, reached) in [(SandboxTier::Full, false), (SandboxTier::Tree, true)] {
        let mut spec = home.sh(tier, "");
        spec.program = "/usr/bin/perl".into();
        spec.args = vec!["-e".into(), attack.into(), path.clone().into()];
        let finished = run(spec).await.unwrap();
        assert_eq!(text(&finished.stdout) == "in", reached, "{tier}: {finished:?}");
    }
}

#[tokio::test]
async fn the_proxy_reaches_granted_hosts() {
    if !is_possible(SandboxTier::Full) {
        return;
    }
    let home = Home::new();
    let mut server = Server::new().await;
    let port = server.port;
    let tunnel = asks(&format!("CONNECT good.test:{port} HTTP/1.1\\r\\n\\r\\nthrough the tunnel"));
    let finished = run(with_proxy(&home, &server, &tunnel)).await.unwrap();
    let stdout = text(&finished.stdout);
    assert!(stdout.starts_with("HTTP/1.1 200 Connection established\r\n\r\n"), "{finished:?}");
    assert!(stdout.ends_with("welcome\n3\n"), "{finished:?}");
    assert_eq!(server.heard(), ["connected", "through the tunnel"]);

    let plain = asks(&format!(
        "GET http://good.test:{port}/path?q=1 HTTP/1.1\\r\\nHost: evil.test\\r\\n\
         Proxy-Authorization: Basic x\\r\\nX-Kept: yes\\r\\n\\r\\n"
    ));
    let finished = run(with_proxy(&home, &server, &plain)).await.unwrap();
    assert!(text(&finished.stdout).contains("welcome"), "{finished:?}");
    let expected = format!(
        "GET /path?q=1 HTTP/1.1\r\nHost: good.test:{port}\r\nConnection: close\r\nX-Kept: yes\r\n\r\n"
    );
    assert_eq!(server.heard(), ["connected".to_owned(), expected]);
}

#[tokio::test]
async fn the_proxy_refuses_all_else() {
    if !is_possible(SandboxTier::Full) {
        return;
    }
    let home = Home::new();
    let mut server = Server::new().await;
    let port = server.port;
    for (what, request, status) in [
        ("a host that is not granted", format!("CONNECT evil.test:{port} HTTP/1.1"), 403),
        ("its address", format!("CONNECT 127.0.0.1:{port} HTTP/1.1"), 403),
        ("its address in another form", format!("CONNECT 0x7f.1:{port} HTTP/1.1"), 403),
        ("this machine by name", format!("CONNECT localhost:{port} HTTP/1.1"), 403),
        ("a name below", format!("CONNECT x.good.test:{port} HTTP/1.1"), 403),
        ("a name that contains it", format!("CONNECT good.test.evil.test:{port} HTTP/1.1"), 403),
        ("a name with a user", format!("CONNECT good.test@evil.test:{port} HTTP/1.1"), 400),
        ("a name with a path", format!("CONNECT evil.test:{port}/good.test:1 HTTP/1.1"), 400),
        ("another port of a private address", "CONNECT good.test:1 HTTP/1.1".to_owned(), 403),
        ("a name that is rebound", "CONNECT private.test:443 HTTP/1.1".to_owned(), 403),
        ("a metadata service", "CONNECT metadata.test:80 HTTP/1.1".to_owned(), 403),
        ("a redirect's target", format!("GET http://evil.test:{port}/ HTTP/1.1"), 403),
        ("https without a tunnel", "GET https://good.test/ HTTP/1.1".to_owned(), 400),
        ("a file", "GET file:///etc/passwd HTTP/1.1".to_owned(), 400),
        ("no target", "GET / HTTP/1.1".to_owned(), 400),
        (
            "a second line by a bare line feed",
            format!("GET http://good.test:{port}/ HTTP/1.1\\r\\nA: b\\nHost: evil.test"),
            400,
        ),
        (
            "a continued header",
            format!("GET http://good.test:{port}/ HTTP/1.1\\r\\nA: b\\r\\n Host: evil.test"),
            400,
        ),
        (
            "a header with a space",
            format!("GET http://good.test:{port}/ HTTP/1.1\\r\\nHost : evil.test"),
            400,
        ),
        ("no HTTP", "hello".to_owned(), 400),
    ] {
        let finished =
            run(with_proxy(&home, &server, &asks(&format!("{request}\\r\\n\\r\\n")))).await;
        let finished = finished.unwrap();
        let stdout = text(&finished.stdout);
        assert!(stdout.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {finished:?}");
        assert_eq!(server.heard(), Vec::<String>::new(), "{what}");
    }
    let endless = "exec 3<>/dev/tcp/127.0.0.1/3128 || exit 9; (yes A | tr -d '\\n' >&3) & cat <&3";
    let finished = run(with_proxy(&home, &server, endless)).await.unwrap();
    // The proxy may close while more is written, which resets the connection.
    let stdout = text(&finished.stdout);
    assert!(stdout.is_empty() || stdout.starts_with("HTTP/1.1 400 "), "{finished:?}");
    assert_eq!(server.heard(), Vec::<String>::new());
}

#[tokio::test]
async fn without_hosts_there_is_no_proxy() {
    if !is_possible(SandboxTier::Full) {
        return;
    }
    let home = Home::new();
    let attack = "exec 3<>/dev/tcp/127.0.0.1/3128 || exit 9";
    let finished = run(script(&home, SandboxTier::Full, attack)).await.unwrap();
    assert_ne!(finished.ended, ProcessEnd::Code(0), "{finished:?}");
}

//! Authentication over HTTP, and the host names that requests may use.

use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    path::Path,
    sync::Arc,
};

use tokio::net::{TcpListener, TcpSocket};
use toolcrib_capabilities::http::HttpClient;
use toolcrib_engine::Engine;
use toolcrib_gateway::{
    Access, CallLimits, Fence, GatewayError, HttpAccess, ResourceServer, Tls, TokenAlgorithm,
};
use toolcrib_project::{Project, ServeOAuth, TlsFiles, TokenFile};

use super::Problem;
use crate::{
    args::ServeArgs,
    output::{self, HttpEndpoint},
};

/// The limit of connections that wait to be accepted; as of `TcpListener::bind`.
const WAITING: u32 = 1024;

/// The source of the tokens.
pub(super) enum Tokens {
    /// Declared by the project.
    Declared,
    /// Generated, and stored in a file.
    File(TokenFile),
}

/// A socket at an address. Until it listens, connections are refused: a client that is accepted finds its
/// token in the file.
pub(super) fn bind(address: SocketAddr) -> Result<TcpSocket, Problem> {
    let bound = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // On Windows it would permit a second server at the address.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        io::Result::Ok(socket)
    };
    bound().map_err(|error| unavailable(address, &error))
}

pub(super) fn listen(socket: TcpSocket, address: SocketAddr) -> Result<TcpListener, Problem> {
    socket.listen(WAITING).map_err(|error| unavailable(address, &error))
}

fn unavailable(address: SocketAddr, error: &io::Error) -> Problem {
    Problem::failed("address_unavailable", format!("{address} cannot be served at: {error}"))
}

/// Whether the project declares who may send requests.
pub(super) fn is_declared(project: &Project) -> bool {
    !project.serve_tokens().is_empty() || project.serving().oauth.is_some()
}

/// The authorization server whose tokens are accepted.
fn resource_server(oauth: &ServeOAuth, default: &Access) -> ResourceServer {
    let mut template = Access::new();
    template.personality.clone_from(&oauth.personality);
    template.reveal = oauth.reveal;
    template.skills.clone_from(&default.skills);
    if oauth.unfenced {
        template.fence = Fence::Off;
    }
    let mut server = ResourceServer::new(&*oauth.resource, &*oauth.issuer).access(template);
    if let Some(audience) = &oauth.audience {
        server = server.audience(&**audience);
    }
    if let Some(jwks) = &oauth.jwks {
        server = server.jwks(&**jwks);
    }
    if let Some(names) = &oauth.algorithms {
        let all = TokenAlgorithm::ALL.into_iter();
        server = server.algorithms(all.filter(|algorithm| names.contains(&algorithm.name())));
    }
    if let Some(claim) = &oauth.principal {
        server = server.principal_claim(&**claim);
    }
    if let Some(claim) = &oauth.tenant {
        server = server.tenant_claim(&**claim);
    }
    server = oauth.scopes.iter().fold(server, |server, scope| server.scope(&**scope));
    if !oauth.allow_addresses.is_empty() {
        let client = HttpClient::builder().allow_addresses(oauth.allow_addresses.iter().copied());
        server = server.client(client);
    }
    server
}

/// The identities of the declared tokens.
pub(super) fn declared(project: &Project, default: &Access) -> impl Iterator<Item = Access> {
    project.serve_tokens().iter().map(|token| {
        let mut access = Access::new();
        access.principal = token.principal().cloned();
        access.tenant = token.tenant().cloned();
        access.personality = token.personality().cloned();
        access.reveal = token.reveal();
        access.max_name_chars = token.max_name_chars();
        access.skills.clone_from(&default.skills);
        let mut limits = CallLimits::new();
        limits.per_minute = token.calls_per_minute();
        limits.concurrent = token.max_concurrent();
        access.limits = limits;
        if !token.is_fenced() {
            access.fence = Fence::Off;
        }
        access
    })
}

/// The identities that may send requests, and the source of the tokens.
pub(super) fn access(
    args: &ServeArgs,
    project: &Project,
    engine: &Engine,
    default: Access,
    address: SocketAddr,
) -> Result<(HttpAccess, Tokens), Problem> {
    let mut access = HttpAccess::new();
    for host in args.hosts.iter().cloned().chain(own_host(address, &args.hosts)) {
        access = access.allow_host(host);
    }
    for origin in &args.origins {
        access = access.allow_origin(origin);
    }
    for endpoint in &project.serving().endpoints {
        access = access.endpoint(Arc::clone(&endpoint.name), Arc::clone(&endpoint.personality));
    }
    if let Some(files) = &project.serving().tls {
        access = access.tls(tls(files)?);
    }
    let tokens = if !is_declared(project) {
        let made = project
            .token_file()
            .map_err(|error| Problem::failed("token_unavailable", error.to_string()))?;
        // Results should not contain the token; if one does, it is redacted.
        let _ = engine.redactor().learn(made.token.expose());
        access = access.token(made.token.expose(), default);
        Tokens::File(made)
    } else {
        let says_who = args.principal.is_some()
            || args.tenant.is_some()
            || args.personality.is_some()
            || !args.claims.is_empty();
        if says_who || args.show_token {
            return Err(Problem::usage(
                "`--as`, `--tenant`, `--claim`, `--personality` and `--show-token` are for a \
                 project without `[[serve.token]]` and `[serve.oauth]`: in this project each token \
                 has its own identity",
            ));
        }
        for (token, of_token) in project.serve_tokens().iter().zip(declared(project, &default)) {
            let value = project.token(token).map_err(|error| {
                Problem::invalid(format!(
                    "{}: the token cannot be read or created: {error}",
                    token.origin()
                ))
            })?;
            let _ = engine.redactor().learn(value.expose());
            access = access.token(value.expose(), of_token);
        }
        if let Some(oauth) = &project.serving().oauth {
            access = access.oauth(resource_server(oauth, &default));
        }
        Tokens::Declared
    };
    Ok((access, tokens))
}

/// Prints the address that is served, and how a client finds its token.
pub(super) fn tell(args: &ServeArgs, project: &Project, tokens: &Tokens, address: SocketAddr) {
    let file = match tokens {
        Tokens::File(file) => Some(file),
        Tokens::Declared => None,
    };
    let token = file.map(|file| file.path.as_path());
    let host = host_to_name(address, &args.hosts);
    let is_exposed = !address.ip().is_loopback();
    let is_tls = project.serving().tls.is_some();
    let more = &project.serving().endpoints;
    output::at(&HttpEndpoint { address, host, token, is_exposed, is_tls, more });
    if let Some(file) = file.filter(|_| args.show_token) {
        output::token(file.token.expose());
    }
}

/// The certificate of a gateway.
fn tls(files: &TlsFiles) -> Result<Tls, Problem> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| {
            Problem::invalid(format!("`[serve.tls]`: {} cannot be read: {error}", path.display()))
        })
    };
    Tls::from_pem(&read(&files.certificate)?, &read(&files.key)?)
        .map_err(|error| Problem::invalid(format!("`[serve.tls]`: {error}")))
}

/// The served address itself as a host that requests may name. It is an IP address, not a name, so
/// DNS rebinding is impossible. Loopback addresses are allowed as long as no host is named.
fn own_host(address: SocketAddr, named: &[String]) -> Option<String> {
    let loopback = address.ip() == IpAddr::from([127, 0, 0, 1])
        || address.ip() == IpAddr::from(Ipv6Addr::LOCALHOST);
    let is_default = named.is_empty() && loopback;
    (!address.ip().is_unspecified() && !is_default).then(|| bare(address.ip()))
}

/// The host that a client writes: the first named host, else the address on this machine.
fn host_to_name(address: SocketAddr, named: &[String]) -> String {
    let port = address.port();
    if !address.ip().is_unspecified() {
        return address.to_string();
    }
    match named.first() {
        Some(host)
            if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) =>
        {
            host.clone()
        }
        Some(host) => format!("{host}:{port}"),
        None => format!("localhost:{port}"),
    }
}

fn bare(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

pub(super) fn problem(error: &GatewayError, tokens: &Tokens) -> Problem {
    match (error, tokens) {
        (GatewayError::Host(_) | GatewayError::Origin(_), _) => Problem::usage(error.to_string()),
        (GatewayError::TokenTooShort { .. }, Tokens::File(TokenFile { path, .. })) => {
            Problem::invalid(format!(
                "{}: {error}; remove the file and a new one is created",
                path.display()
            ))
        }
        (GatewayError::TokenTooShort { .. } | GatewayError::SameToken { .. }, _) => {
            Problem::invalid(format!("`[[serve.token]]`: {error}"))
        }
        _ => super::problem(error),
    }
}

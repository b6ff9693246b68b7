//! Tools of the kinds that reach a host: `http`, `openapi` and `web`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use toolcrib_capabilities::http::{AllowedAddress, HttpClient, IpNet};
use toolcrib_config::Diagnostic;
use toolcrib_core::Tool;
use toolcrib_tools::{Declaration, DeclaredKind, ExternalAccess, ToolErrors};

use super::Source;
use crate::bind::{addresses::host, grant::allowed_addresses};

/// One client for all tools that may dial the same addresses, so that they share connections.
#[derive(Debug, Default)]
pub(crate) struct Clients(Vec<(Vec<AllowedAddress>, HttpClient)>);

impl Clients {
    fn client(&mut self, allowed: Vec<AllowedAddress>) -> HttpClient {
        if let Some((_, client)) = self.0.iter().find(|(known, _)| *known == allowed) {
            return client.clone();
        }
        let client = HttpClient::builder().allow_addresses(allowed.iter().copied()).build();
        self.0.push((allowed, client.clone()));
        client
    }
}

/// Builds a tool that reaches one host, with its client. `keys`: the pointer of its URL, and the key
/// with the addresses that it may dial.
pub(crate) fn build(
    kind: &dyn DeclaredKind,
    keys: (&str, &str),
    source: &Source<'_>,
    clients: &mut Clients,
    build: impl FnOnce(Declaration, &HttpClient) -> Result<Tool, ToolErrors>,
) -> Option<Tool> {
    let build = |client: &HttpClient| source.built(build(source.declaration.clone(), client));
    let accesses = kind.external_access();
    let [ExternalAccess::Host { url, allow_addresses }] = accesses.as_slice() else {
        // It cannot be built, which is recorded.
        return build(&clients.client(Vec::new()));
    };
    let grant = source.names.grant.as_deref();
    let allowed = allowed_addresses(allow_addresses, grant, source.problems);
    let tool = build(&clients.client(allowed.clone()))?;
    warn_of_private_host(url, keys, allow_addresses.is_empty(), &allowed, source);
    Some(tool)
}

/// A host that is an address in the URL, or is this machine by its name, is known before any
/// call. The address of another name is not.
fn warn_of_private_host(
    url: &str,
    (pointer, key): (&str, &str),
    allows_none: bool,
    allowed: &[AllowedAddress],
    source: &Source<'_>,
) {
    let Some((host, port, offset)) = host(url) else { return };
    let addresses = private_addresses(url);
    let is_allowed = |address| {
        let address = SocketAddr::new(address, port);
        allowed.iter().any(|one| one.allows(address))
    };
    if addresses.is_empty() || addresses.iter().any(|address| is_allowed(*address)) {
        return;
    }
    let nets: Vec<_> =
        addresses.iter().map(|address| format!("\"{}\"", IpNet::from(*address))).collect();
    let nets = nets.join(", ");
    let help = if allows_none {
        format!("if it is meant, write {key} = [{nets}]")
    } else {
        format!("if it is meant, add {nets} to `{key}`")
    };
    let message = format!(
        "`{host}` is not on the public internet, and `{key}` does not allow it: every \
         call will be `not_available`"
    );
    let at = source.declaration.source.character(pointer, offset);
    let at = at.as_ref().unwrap_or(&source.section.at);
    source.problems.push(Diagnostic::warning(at, message).help(help));
}

/// The addresses of a URL's host if it is this machine, or an address that is not public.
pub(crate) fn private_addresses(url: &str) -> Vec<IpAddr> {
    let Some((host, ..)) = host(url) else { return Vec::new() };
    match host.trim_matches(['[', ']']).parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(address) if is_private(address) => vec![address],
        Err(_) if host == "localhost" => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        _ => Vec::new(),
    }
}

/// Whether an address certainly belongs to one machine or to a private network.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_unspecified()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.is_unspecified()
        }
    }
}

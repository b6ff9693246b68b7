//! Hosts of tools that are not on the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use toolcrib_capabilities::http::{AllowedAddress, IpNet};
use toolcrib_config::{Diagnostic, Problems};
use toolcrib_tools::ExternalAccess;

use super::unbuilt::UnbuiltTool;
use crate::bind::addresses::host;

/// A host that is an address in the URL, or is this machine by its name, is known before any
/// call. The address of another name is not.
pub(super) fn warn_of_private_host(
    access: &ExternalAccess<'_>,
    tool: &UnbuiltTool<'_>,
    problems: &Problems,
) {
    let ExternalAccess::Host { url, url_field, allow_addresses, addresses_key: key } = access
    else {
        return;
    };
    let Some((host, port, offset)) = host(url) else { return };
    let addresses = private_addresses(url);
    let allowed = || allow_addresses.iter().filter_map(|text| text.value.parse().ok());
    let is_allowed = |address| {
        let address = SocketAddr::new(address, port);
        allowed().any(|one: AllowedAddress| one.allows(address))
    };
    if addresses.is_empty() || addresses.iter().any(|address| is_allowed(*address)) {
        return;
    }
    let nets: Vec<_> =
        addresses.iter().map(|address| format!("\"{}\"", IpNet::from(*address))).collect();
    let nets = nets.join(", ");
    let help = if allow_addresses.is_empty() {
        format!("if it is meant, write {key} = [{nets}]")
    } else {
        format!("if it is meant, add {nets} to `{key}`")
    };
    let message = format!(
        "`{host}` is not on the public internet, and `{key}` does not allow it: every \
         call will be `not_available`"
    );
    let at = tool.declaration.source.character(url_field, offset);
    let at = at.as_ref().unwrap_or(&tool.section.at);
    problems.push(Diagnostic::warning(at, message).help(help));
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

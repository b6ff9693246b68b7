//! Hosts and addresses in declarations.

use std::sync::Arc;

use toolcrib_capabilities::http::{AllowedAddress, parse_url};
use toolcrib_config::{Diagnostic, Located, Problems};

/// The host of a URL, as it is dialed; `None` where the URL cannot be read.
pub(crate) fn host_of(url: &str) -> Option<String> {
    host(url).map(|(host, ..)| host)
}

/// The host of a URL without placeholders in it, as it is dialed, its port, and its offset.
pub(crate) fn host(url: &str) -> Option<(String, u16, usize)> {
    let start = url.find("://")? + "://".len();
    let rest = url.get(start..)?;
    let end = rest.find(['/', '?', '#']).map_or(url.len(), |end| start + end);
    let read = parse_url(url.get(..end)?).ok()?;
    let (host, port) = (read.host_str()?.to_owned(), read.port_or_known_default()?);
    Some((host, port, start))
}

/// An entry that is neither an address nor a network is recorded.
pub(crate) fn parse_address(
    text: &Located<Arc<str>>,
    problems: &Problems,
) -> Option<AllowedAddress> {
    let address = text.value.parse();
    if address.is_err() {
        let message = format!("`{}` is neither an address nor a net", text.value.escape_debug());
        let help = "write an address such as \"127.0.0.1\" or a net such as \"10.1.0.0/16\", with a \
                    port if it is not that of the URL: \"127.0.0.1:8080\"";
        problems.push(Diagnostic::error(&text.at, message).help(help));
    }
    address.ok()
}

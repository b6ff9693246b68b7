//! Addresses outside the public internet that may be dialed.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use ipnet::IpNet;

/// Addresses outside the public internet that a client may dial: a network, or an address, on one
/// port.
///
/// As text: `10.1.2.3`, `10.0.0.0/8` or `fd00::/8`, with a port `10.1.2.3:8080`, `10.0.0.0/8:8080`,
/// `[::1]:8080` or `[fd00::/8]:8080`. Without a port it is that of the request's own URL: no
/// redirect leads from there to another service on such an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AllowedAddress {
    net: IpNet,
    port: Option<u16>,
}

impl AllowedAddress {
    /// The network whose addresses are allowed.
    pub fn net(&self) -> IpNet {
        self.net
    }

    /// Whether a request may dial an address of its URL.
    pub fn allows(&self, address: SocketAddr) -> bool {
        self.allows_from(address, address.port())
    }

    /// Whether a request may dial an address of its URL, with this port, or of a redirect.
    pub(crate) fn allows_from(&self, address: SocketAddr, own_port: u16) -> bool {
        self.net.contains(&address.ip()) && address.port() == self.port.unwrap_or(own_port)
    }
}

/// On the port of the request's own URL.
impl From<IpNet> for AllowedAddress {
    fn from(net: IpNet) -> Self {
        Self { net, port: None }
    }
}

/// On that port only.
impl From<SocketAddr> for AllowedAddress {
    fn from(address: SocketAddr) -> Self {
        Self { net: address.ip().into(), port: Some(address.port()) }
    }
}

impl FromStr for AllowedAddress {
    type Err = InvalidAddressError;

    fn from_str(text: &str) -> Result<Self, InvalidAddressError> {
        let invalid = || InvalidAddressError { text: text.to_owned() };
        let net = |text: &str| {
            text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()
        };
        if let Some(net) = net(text) {
            return Ok(net.into());
        }
        let (address, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(invalid)?;
        let found = match address.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
            Some(inner) => net(inner).filter(|net| matches!(net, IpNet::V6(_))),
            None => net(address).filter(|net| matches!(net, IpNet::V4(_))),
        };
        Ok(Self { net: found.ok_or_else(invalid)?, port: Some(port) })
    }
}

impl fmt::Display for AllowedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.net, self.port) {
            (net, None) => net.fmt(f),
            (IpNet::V4(net), Some(port)) => write!(f, "{net}:{port}"),
            (IpNet::V6(net), Some(port)) => write!(f, "[{net}]:{port}"),
        }
    }
}

/// A text that is not an address or network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is neither an address nor a network; write an address such as `127.0.0.1` or a network \
     such as `10.1.0.0/16`, with a port if it is not that of the URL: `127.0.0.1:8080`, \
     `[::1]:8080`",
    text.escape_debug()
)]
pub struct InvalidAddressError {
    /// The text.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_or_a_net_may_have_a_port() {
        for (text, shown) in [
            ("10.1.2.3", "10.1.2.3/32"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("::1", "::1/128"),
            ("fd00::/8", "fd00::/8"),
            ("10.1.2.3:8080", "10.1.2.3/32:8080"),
            ("10.0.0.0/8:1", "10.0.0.0/8:1"),
            ("[::1]:65535", "[::1/128]:65535"),
            ("[fd00::/8]:80", "[fd00::/8]:80"),
        ] {
            let read: AllowedAddress = text.parse().unwrap();
            assert_eq!(read.to_string(), shown, "{text}");
            assert_eq!(shown.parse(), Ok(read), "what is shown can be read");
        }
        for text in [
            "",
            ":",
            ":80",
            "localhost",
            "localhost:80",
            "10.1.2.3:",
            "10.1.2.3:0",
            "10.1.2.3:65536",
            "10.1.2.3:http",
            "10.1.2.3:-1",
            "[10.1.2.3]:80",
            "[::1]",
            "[::1",
            "[::1]80",
            "::1/128:80",
            "10.0.0.0/99",
            "10.0.0.0/8:80:80",
            "10.1.2.3:80/8",
            "http://10.1.2.3:80",
        ] {
            let error = text.parse::<AllowedAddress>().unwrap_err();
            assert!(error.to_string().contains("neither an address nor a network"), "{text}");
        }
    }

    #[test]
    fn one_without_a_port_follows_the_url_and_no_redirect() {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let any: AllowedAddress = "127.0.0.0/8".parse().unwrap();
        assert!(any.allows(address(80)) && any.allows(address(8080)));
        assert!(any.allows_from(address(8080), 8080) && !any.allows_from(address(9000), 8080));
        let one: AllowedAddress = "127.0.0.1:9000".parse().unwrap();
        assert!(one.allows(address(9000)) && !one.allows(address(8080)));
        assert!(one.allows_from(address(9000), 8080) && !one.allows_from(address(8080), 8080));
    }
}

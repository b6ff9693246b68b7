//! The arguments of `serve`.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use clap::Args;

use super::{Claim, run::timeout};

/// The default address: this machine alone.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8808);

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve over HTTP at this address [default: 127.0.0.1:8808]; a number alone is a port of this
    /// machine. An address that other machines can reach must be written out
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:8808")]
    pub(crate) http: Option<HttpAddress>,
    /// Start with this skill active, for the clients that may read it. May be repeated; the last
    /// counts as activated last
    #[arg(long = "skill", value_name = "SKILL")]
    pub(crate) skills: Vec<String>,
    /// Act for this principal [default: none]; over HTTP only if the project declares no token
    #[arg(long = "as", value_name = "PRINCIPAL")]
    pub(crate) principal: Option<String>,
    /// Act within this tenant [default: none]; over HTTP only if the project declares no token
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
    /// Add a token claim (a string), used to resolve roles. May be repeated; repeating a name makes
    /// a list [default: no claims]; over HTTP only if the project declares no token
    #[arg(long = "claim", value_name = "NAME=VALUE")]
    pub(crate) claims: Vec<Claim>,
    /// Act as this personality of the project [default: the one named default]; over HTTP only if
    /// the project declares no token
    #[arg(long, value_name = "PERSONALITY")]
    pub(crate) personality: Option<String>,
    /// List the tools and prompts of servers without `mcp__SERVER__` before their names, except for
    /// servers with a `prefix`; of two equal names the later one keeps it
    #[arg(long)]
    pub(crate) no_prefix: bool,
    /// Accept requests that name this host, NAME or NAME:PORT, in addition to the served address.
    /// May be repeated [default: localhost, 127.0.0.1 and [::1]]
    #[arg(long = "allow-host", value_name = "HOST", requires = "http")]
    pub(crate) hosts: Vec<String>,
    /// Allow web pages of this origin, such as https://tools.example, to send requests and read the
    /// responses. May be repeated [default: only pages of the endpoint itself]
    #[arg(long = "allow-origin", value_name = "ORIGIN", requires = "http")]
    pub(crate) origins: Vec<String>,
    /// Let other replicas of this gateway reach this one at this address, to continue a call that waits for
    /// its client's input here [default: the served address, unless it is 0.0.0.0 or [::]]
    #[arg(long, value_name = "IP:PORT", requires = "http")]
    pub(crate) replica_address: Option<SocketAddr>,
    /// Print the generated token once; it is stored in the state folder
    #[arg(long, requires = "http")]
    pub(crate) show_token: bool,
    /// Write every event to this file as JSON Lines; - is standard error. An existing file is
    /// replaced; inside the project's and the state folder only if it is named *.jsonl, *.ndjson or
    /// *.log
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Append one line for each request to this file, as JSON; - is standard error, as text. Inside
    /// the project's and the state folder an existing file is appended to only if it is named
    /// *.jsonl, *.ndjson or *.log
    #[arg(long, value_name = "FILE")]
    pub(crate) access_log: Option<PathBuf>,
    /// Store each call with its arguments, its result and its events in the state folder, for
    /// `toolcrib runs --gateway` and `toolcrib trace --gateway`, by principal; kept for 30 days
    #[arg(long)]
    pub(crate) store_calls: bool,
    /// Stop a call without progress after this time, such as 30s or "1h 30m", unless its tool, server or
    /// imported file sets another [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    pub(crate) timeout: Option<Duration>,
}

/// The address to serve HTTP at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HttpAddress(pub(crate) SocketAddr);

impl FromStr for HttpAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let local = |port| SocketAddr::new(DEFAULT_ADDRESS.ip(), port);
        if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
            return Ok(Self(local(port)));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.ends_with(':') || host == "[::1]" => {
                (host, port.parse().ok())
            }
            _ => (text, Some(DEFAULT_ADDRESS.port())),
        };
        if let (true, Some(port)) = (host == "localhost", port) {
            return Ok(Self(local(port)));
        }
        let address = text.parse().ok().or_else(|| {
            let bare = text.trim_matches(['[', ']']);
            let v6 = || bare.parse::<Ipv6Addr>().map(IpAddr::from);
            let ip = bare.parse::<IpAddr>().or_else(|_| v6()).ok()?;
            Some(SocketAddr::new(ip, DEFAULT_ADDRESS.port()))
        });
        address.map(Self).ok_or_else(|| {
            "write a port, such as 8808, or an address with a port: 127.0.0.1:8808, [::1]:8808, \
             0.0.0.0:8808"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_short_and_is_of_this_machine_then() {
        for (text, address) in [
            ("9000", "127.0.0.1:9000"),
            (":9000", "127.0.0.1:9000"),
            ("0", "127.0.0.1:0"),
            ("localhost", "127.0.0.1:8808"),
            ("localhost:1", "127.0.0.1:1"),
            ("127.0.0.2", "127.0.0.2:8808"),
            ("::1", "[::1]:8808"),
            ("[::1]", "[::1]:8808"),
            ("[::1]:2", "[::1]:2"),
            ("0.0.0.0:3", "0.0.0.0:3"),
        ] {
            assert_eq!(text.parse(), Ok(HttpAddress(address.parse().unwrap())), "{text}");
        }
        for text in ["", "example.com:80", "localhost:x", "1.2.3.4:99999", "99999", "http://x"] {
            assert!(text.parse::<HttpAddress>().is_err(), "{text}");
        }
    }
}

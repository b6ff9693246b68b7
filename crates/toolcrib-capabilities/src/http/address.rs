//! The addresses that may be dialed.
//!
//! Public ones only: an address reserved for a machine, a network or a special purpose is refused,
//! and so is one that embeds such an address. IPv6 uses an allowlist: anything but global unicast
//! is refused, whatever it is reserved for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::allowed::AllowedAddress;

/// Why an address is refused; completes `which is`.
pub(crate) type Refusal = &'static str;

const METADATA: Refusal = "a service that hands out a cloud machine's credentials";

/// Metadata services of cloud providers, which answer any client inside. Some of the addresses
/// would pass as public, others are in a network that may be allowed for another reason.
const METADATA_ADDRESSES: [IpAddr; 13] = [
    // AWS, Google, Azure and most others.
    v4(169, 254, 169, 254),
    // AWS: names, containers, Kubernetes.
    v4(169, 254, 169, 253),
    v4(169, 254, 170, 2),
    v4(169, 254, 170, 23),
    // Tencent.
    v4(169, 254, 0, 23),
    // Scaleway.
    v4(169, 254, 42, 42),
    // Alibaba.
    v4(100, 100, 100, 200),
    // Oracle.
    v4(192, 0, 0, 192),
    // Azure; a public address.
    v4(168, 63, 129, 16),
    // AWS: metadata, Kubernetes.
    v6(0xfd00, 0x0ec2, 0, 0x0254),
    v6(0xfd00, 0x0ec2, 0, 0x0023),
    // Google.
    v6(0xfd20, 0x00ce, 0, 0x0254),
    // Scaleway.
    v6(0xfd00, 0x0042, 0, 0x0042),
];

const REFUSED_V4: [(Ipv4Net, Refusal); 15] = [
    (net4(0, 0, 0, 0, 8), "of this network"),
    (net4(10, 0, 0, 0, 8), "private"),
    (net4(100, 64, 0, 0, 10), "of a provider's inner network"),
    (net4(127, 0, 0, 0, 8), "this machine"),
    (net4(169, 254, 0, 0, 16), "link-local"),
    (net4(172, 16, 0, 0, 12), "private"),
    (net4(192, 0, 0, 0, 24), "for protocols only"),
    (net4(192, 0, 2, 0, 24), "for documentation only"),
    (net4(192, 88, 99, 0, 24), "a relay into IPv6"),
    (net4(192, 168, 0, 0, 16), "private"),
    (net4(198, 18, 0, 0, 15), "for benchmarks only"),
    (net4(198, 51, 100, 0, 24), "for documentation only"),
    (net4(203, 0, 113, 0, 24), "for documentation only"),
    (net4(224, 0, 0, 0, 4), "multicast"),
    (net4(240, 0, 0, 0, 4), "reserved"),
];

const REFUSED_V6: [(Ipv6Net, Refusal); 12] = [
    (net6([0, 0], 128), "unspecified"),
    (net6_loopback(), "this machine"),
    (net6([0, 0], 96), "an IPv4 address in a form that is no longer used"),
    (net6([0x0064, 0xff9b], 32), "of an inner translation to IPv4"),
    (net6([0x2001, 0], 23), "for protocols and tunnels only"),
    (net6([0x2001, 0x0db8], 32), "for documentation only"),
    (net6([0x2002, 0], 16), "a tunnel over IPv4"),
    (net6([0x3fff, 0], 20), "for documentation only"),
    (net6([0xfc00, 0], 7), "private"),
    (net6([0xfe80, 0], 10), "link-local"),
    (net6([0xfec0, 0], 10), "private"),
    (net6([0xff00, 0], 8), "multicast"),
];

/// Allocated global unicast; all other addresses are refused.
const GLOBAL_V6: Ipv6Net = net6([0x2000, 0], 3);
/// The well-known prefix of translation to IPv4 (NAT64), used by networks without IPv4.
const TRANSLATED: Ipv6Net = net6([0x0064, 0xff9b], 96);

/// The canonical form for checks and dialing: IPv4 written as IPv6 is IPv4.
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Why an address and its port are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusedTarget {
    Address(Refusal),
    /// The address is permitted, but not on this port.
    Port,
}

/// How a request got its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortOrigin {
    /// The port of the request's own URL.
    pub(crate) own_port: u16,
    /// Whether the request's own URL or an upgrade to `https` leads there; if not, a redirect does.
    pub(crate) is_usual: bool,
}

/// Checks a [`canonical`] address. An entry of `allowed` permits it; for an address of
/// [`METADATA_ADDRESSES`] only an entry for exactly that address, so that none is permitted by
/// accident. A public one is permitted on a usual port.
pub(crate) fn judge(
    address: SocketAddr,
    way: PortOrigin,
    allowed: &[AllowedAddress],
) -> Result<(), RefusedTarget> {
    let (ip, port) = (address.ip(), address.port());
    let is_metadata = METADATA_ADDRESSES.contains(&ip);
    let mut nets = allowed.iter().filter(|one| {
        if is_metadata { one.net() == IpNet::from(ip) } else { one.net().contains(&ip) }
    });
    let mut has_net = false;
    if nets.any(|one| {
        has_net = true;
        one.allows_from(address, way.own_port)
    }) {
        return Ok(());
    }
    let carried = |v6| judge(SocketAddr::new(IpAddr::V4(last_four(v6)), port), way, allowed);
    let public = match ip {
        _ if is_metadata => Err(RefusedTarget::Address(METADATA)),
        IpAddr::V4(v4) => refused(&REFUSED_V4, |net| net.contains(&v4)),
        IpAddr::V6(v6) if TRANSLATED.contains(&v6) => carried(v6),
        IpAddr::V6(v6) => refused(&REFUSED_V6, |net| net.contains(&v6)).and_then(|()| {
            if !GLOBAL_V6.contains(&v6) {
                Err(RefusedTarget::Address("not of the public internet"))
            } else if is_isatap(v6) {
                carried(v6)
            } else {
                Ok(())
            }
        }),
    };
    match public {
        Err(RefusedTarget::Address(_)) if has_net => Err(RefusedTarget::Port),
        Ok(()) if !way.is_usual => Err(RefusedTarget::Port),
        judged => judged,
    }
}

fn refused<N>(nets: &[(N, Refusal)], contains: impl Fn(&N) -> bool) -> Result<(), RefusedTarget> {
    let found = nets.iter().find(|(net, _)| contains(net));
    found.map_or(Ok(()), |(_, why)| Err(RefusedTarget::Address(why)))
}

/// Whether the last four bytes are an address to which the packet is forwarded over IPv4.
fn is_isatap(address: Ipv6Addr) -> bool {
    let [.., high, low, _, _] = address.segments();
    matches!(high, 0 | 0x0200) && low == 0x5efe
}

fn last_four(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

const fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

const fn v6(first: u16, second: u16, seventh: u16, last: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(first, second, 0, 0, 0, 0, seventh, last))
}

const fn net4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn net6([first, second]: [u16; 2], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), bits)
}

const fn net6_loopback() -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(address: &str, allowed: &[&str]) -> Result<(), Refusal> {
        let way = PortOrigin { own_port: 80, is_usual: true };
        judged(address, way, allowed).map_err(|refused| match refused {
            RefusedTarget::Address(why) => why,
            RefusedTarget::Port => panic!("the port is its own"),
        })
    }

    fn judged(address: &str, way: PortOrigin, allowed: &[&str]) -> Result<(), RefusedTarget> {
        let allowed: Vec<_> = allowed.iter().map(|one| one.parse().unwrap()).collect();
        judge(SocketAddr::new(canonical(address.parse().unwrap()), 80), way, &allowed)
    }

    #[test]
    fn another_port_is_reached_where_it_is_named_and_nowhere_else() {
        let redirected = PortOrigin { own_port: 8080, is_usual: false };
        for (address, allowed, expected) in [
            ("8.8.8.8", "10.0.0.1", Err(RefusedTarget::Port)),
            ("8.8.8.8", "8.8.8.8:80", Ok(())),
            ("8.8.8.8", "8.8.8.8", Err(RefusedTarget::Port)),
            ("10.0.0.1", "10.0.0.0/8", Err(RefusedTarget::Port)),
            ("10.0.0.1", "10.0.0.0/8:80", Ok(())),
            ("10.0.0.1", "10.0.0.0/8:81", Err(RefusedTarget::Port)),
            ("10.0.0.1", "11.0.0.0/8:80", Err(RefusedTarget::Address("private"))),
            ("64:ff9b::10.0.0.1", "10.0.0.0/8", Err(RefusedTarget::Port)),
            ("169.254.169.254", "169.254.169.254", Err(RefusedTarget::Port)),
            ("169.254.169.254", "169.254.0.0/16:80", Err(RefusedTarget::Address(METADATA))),
        ] {
            assert_eq!(judged(address, redirected, &[allowed]), expected, "{address} {allowed}");
        }
        let own = PortOrigin { own_port: 80, is_usual: true };
        assert_eq!(judged("10.0.0.1", own, &["10.0.0.1:81"]), Err(RefusedTarget::Port));
        assert_eq!(judged("10.0.0.1", own, &["10.0.0.1:81", "10.0.0.1"]), Ok(()));
    }

    #[test]
    fn what_is_not_of_the_public_internet_is_refused_up_to_its_edges() {
        for address in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.0.0",
            "169.254.169.254",
            "169.254.255.255",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.0",
            "192.0.0.192",
            "192.0.0.255",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::2",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::1:808:808",
            "64:ff9b:1::8.8.8.8",
            "64:ff9b:1:7f00:1::",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:1ff:ffff::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff::1",
            "3fff:fff:ffff::1",
            "2a00::5efe:10.0.0.1",
            "2a00::200:5efe:127.0.0.1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fdff::1",
            "fe80::1",
            "fe80::5efe:8.8.8.8",
            "fe90::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff02::1",
        ] {
            assert!(verdict(address, &[]).is_err(), "{address} passes");
        }
    }

    #[test]
    fn what_lies_just_beside_is_public() {
        for address in [
            "1.0.0.0",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "203.0.114.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2001:db7:ffff::1",
            "2003::1",
            "2606:4700:4700::1111",
            "2a00::5efe:8.8.8.8",
            "3ffe::1",
            "3fff:1000::1",
        ] {
            assert_eq!(verdict(address, &[]), Ok(()), "{address}");
        }
    }

    #[test]
    fn a_net_allows_what_it_contains_in_every_spelling_and_no_more() {
        assert_eq!(verdict("10.1.2.3", &["10.1.0.0/16"]), Ok(()));
        assert_eq!(verdict("::ffff:10.1.2.3", &["10.1.0.0/16"]), Ok(()));
        assert_eq!(verdict("64:ff9b::10.1.2.3", &["10.1.0.0/16"]), Ok(()));
        assert_eq!(verdict("10.2.0.0", &["10.1.0.0/16"]), Err("private"));
        assert_eq!(verdict("::1", &["127.0.0.0/8"]), Err("this machine"));
        assert_eq!(verdict("fd12::1", &["fd00::/8"]), Ok(()));
    }

    #[test]
    fn a_metadata_service_is_allowed_by_its_own_address_only() {
        for wide in ["0.0.0.0/0", "169.254.0.0/16", "169.254.169.254/31"] {
            assert_eq!(verdict("169.254.169.254", &[wide]), Err(METADATA), "{wide}");
            assert_eq!(verdict("64:ff9b::169.254.169.254", &[wide]), Err(METADATA), "{wide}");
        }
        assert_eq!(verdict("100.100.100.200", &["100.64.0.0/10"]), Err(METADATA));
        assert_eq!(verdict("fd00:ec2::254", &["fd00::/8", "::/0"]), Err(METADATA));
        assert_eq!(verdict("169.254.169.254", &["169.254.169.254/32"]), Ok(()));
        assert_eq!(verdict("fd00:ec2::254", &["fd00:ec2::254/128"]), Ok(()));
    }
}

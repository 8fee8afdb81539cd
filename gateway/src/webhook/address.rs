//! Which addresses are out in the public network, and may thus be sent to on a client's word.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address belongs to a public host: not private, loopback, link-local (where clouds keep their metadata),
/// carrier-grade NAT, multicast, reserved or documentation, nor an IPv6 form of such a one.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Names that mean a host inside by convention (RFC 6761, RFC 6762 and the private-use `internal`).
pub(super) fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    matches!(last, "localhost" | "local" | "internal" | "lan" | "home" | "corp") || !name.contains('.')
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || matches!(
            (a, b, c),
            (0 | 224..=255, ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _)
        );
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |at: usize| {
        let ([one, two], [three, four]) = (segments[at].to_be_bytes(), segments[at + 1].to_be_bytes());
        Ipv4Addr::new(one, two, three, four)
    };
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    match (segments[0], segments[1]) {
        (0x64, 0xff9b) => is_public_v4(embedded(6)), // NAT64
        (0x2002, _) => is_public_v4(embedded(1)),    // 6to4
        // Teredo, benchmarks and others; documentation
        (0x2001, 0x0000..=0x01ff | 0x0db8) | (0x3fff, _) => false,
        (first, _) => (0x2000..=0x3fff).contains(&first), // global unicast
    }
}

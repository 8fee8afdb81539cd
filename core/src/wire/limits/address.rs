//! Decides which addresses are in the public network, so that requests may be sent to them on a client's behalf.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address belongs to a public host: not private, loopback, link-local (used for cloud metadata),
/// carrier-grade NAT, multicast, reserved or documentation, and not an IPv6 form of any of these.
///
/// ```
/// use gatewright::limits::is_public;
///
/// assert!(is_public([8, 8, 8, 8].into()));
/// assert!(!is_public([169, 254, 169, 254].into()));
/// ```
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Names that conventionally mean an internal host (RFC 6761, RFC 6762 and the private-use `internal`).
pub(super) fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    matches!(last, "localhost" | "local" | "internal" | "lan" | "home" | "corp") || !name.contains('.')
}

/// The rows of the IANA special-purpose address registry (RFC 6890), and multicast (RFC 5771). Rows that the registry
/// calls globally reachable are included: they are services of the network itself and not hosts. So is the address at which
/// the hosts of a cloud serve their guests, which is public by its number alone.
const SPECIAL_V4: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 31, 196, 0], 24),
    ([192, 52, 193, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([192, 175, 48, 0], 24),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// The same for IPv6, limited to global unicast (2000::/3): nothing outside of it is public. For 6to4 (2002::/16), the
/// embedded address decides.
const SPECIAL_V6: &[([u16; 8], u32)] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_in = |(network, length): &([u8; 4], u32)| {
        (address.to_bits() ^ u32::from_be_bytes(*network)) >> (u32::BITS - length) == 0
    };
    !SPECIAL_V4.iter().any(is_in)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |at: usize| {
        let ([one, two], [three, four]) = (segments[at].to_be_bytes(), segments[at + 1].to_be_bytes());
        Ipv4Addr::new(one, two, three, four)
    };
    match segments {
        // ::ffff:0:0/96, IPv4-mapped, and 64:ff9b::/96, NAT64.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_public_v4(embedded(6)),
        [0x2002, ..] => is_public_v4(embedded(1)), // 6to4
        [0x2000..=0x3fff, ..] => {
            let is_in = |(network, length): &([u16; 8], u32)| {
                (address.to_bits() ^ Ipv6Addr::from(*network).to_bits()) >> (u128::BITS - length) == 0
            };
            !SPECIAL_V6.iter().any(is_in)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_public_text(text: &str) -> bool {
        is_public(text.parse().unwrap_or_else(|_| panic!("{text} is not an address")))
    }

    /// First and last address of each row of the IANA IPv4 and IPv6 special-purpose address registries, of multicast
    /// and of formerly reserved ranges; NAT64 and 6to4 with an embedded address.
    #[test]
    fn special_purpose_addresses_are_not_public() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("168.63.129.16", "168.63.129.16"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.0.0", "192.0.0.7"),
            ("192.0.0.8", "192.0.0.8"),
            ("192.0.0.9", "192.0.0.9"),
            ("192.0.0.10", "192.0.0.10"),
            ("192.0.0.170", "192.0.0.171"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.31.196.0", "192.31.196.255"),
            ("192.52.193.0", "192.52.193.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("192.175.48.0", "192.175.48.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "239.255.255.255"),
            ("240.0.0.0", "255.255.255.254"),
            ("255.255.255.255", "255.255.255.255"),
            ("::1", "::1"),
            ("::", "::"),
            ("::7f00:1", "::ffff:ffff"),
            ("::ffff:0.0.0.0", "::ffff:10.255.255.255"),
            ("::ffff:127.0.0.1", "::ffff:255.255.255.255"),
            ("64:ff9b::127.0.0.1", "64:ff9b::192.168.1.1"),
            ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
            ("64:ff9b:1::808:808", "64:ff9b:0:0:0:1:808:808"),
            ("100::", "100::ffff:ffff:ffff:ffff"),
            ("100:0:0:1::", "100:0:0:1:ffff:ffff:ffff:ffff"),
            ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:1::1", "2001:1::3"),
            ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"),
            ("2001:3::", "2001:3:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:4:112::", "2001:4:112:ffff:ffff:ffff:ffff:ffff"),
            ("2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:30::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2002:7f00:1::", "2002:c0a8:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"),
            ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] {
            assert!(!is_public_text(first), "{first}");
            assert!(!is_public_text(last), "{last}");
        }
    }

    #[test]
    fn addresses_adjacent_to_special_ranges_are_public() {
        for address in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "203.0.112.255",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2000::1",
            "2001:200::",
            "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db9::",
            "2002:808:808::",
            "2620:4f:8001::",
            "2606:4700::1111",
            "3fff:1000::",
        ] {
            assert!(is_public_text(address), "{address}");
        }
    }
}

//! Where a `webhook_url` may lead (2.6, 6; the rules are ours): out into the public network, without a password in it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;
use url::{Host, Url};

use super::{Rules, Violation};
use crate::operation::Operation;
use crate::operations;

/// The member of a video request.
const FIELD: &str = "webhook_url";

/// What is wrong with the `webhook_url` of a request.
pub(super) fn check(operation: &Operation, body: &Value, rules: Rules) -> Option<Violation> {
    if operation.id != operations::CREATE_VIDEO.id {
        return None;
    }
    let why = check_webhook_url(body.get(FIELD)?.as_str()?, rules).err()?;
    Some(Violation {
        pointer: format!("/{FIELD}"),
        rule: "format".to_owned(),
        message: format!("{FIELD} {why}"),
        section: "ours".to_owned(),
        missing: None,
    })
}

/// Whether a `webhook_url` may be sent to. Errors: it is no URL, holds a user name or password, or leads where these
/// rules do not allow; says why, without the address. A name is judged by its looks alone: what it resolves to is
/// judged when something is sent there.
pub fn check_webhook_url(url: &str, rules: Rules) -> Result<(), String> {
    let url = Url::parse(url).map_err(|error| format!("is not a URL: {error}"))?;
    if url.scheme() != "https" && !(rules.private_webhooks && url.scheme() == "http") {
        return Err("must begin with https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user name or password".to_owned());
    }
    if url.host().is_none() {
        return Err("names no host".to_owned());
    }
    if !rules.private_webhooks && !may_be_public(&url) {
        return Err("leads to an address that is not public".to_owned());
    }
    Ok(())
}

/// Whether a URL's host is a public address, or a name that may have one.
pub(crate) fn may_be_public(url: &Url) -> bool {
    // The parser has already turned decimal, octal and hexadecimal hosts into addresses.
    match url.host() {
        None => false,
        Some(Host::Ipv4(address)) => is_public(address.into()),
        Some(Host::Ipv6(address)) => is_public(address.into()),
        Some(Host::Domain(name)) => !is_local_name(name),
    }
}

/// Whether an address belongs to a public host: not private, loopback, link-local (where clouds keep their metadata),
/// carrier-grade NAT, multicast, reserved or documentation, nor an IPv6 form of such a one.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Names that mean a host inside by convention (RFC 6761, RFC 6762 and the private-use `internal`).
fn is_local_name(name: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_lead_inside_are_refused() {
        for url in [
            "http://example.com/",
            "ftp://example.com/",
            "not a url",
            "https://user:pw@example.com/",
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://localhost/",
            "https://gateway.localhost./",
            "https://10.1.2.3/",
            "https://169.254.169.254/latest/meta-data",
            "https://100.64.0.1/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://0.0.0.0/",
            "https://metadata.internal/",
        ] {
            assert!(check_webhook_url(url, Rules::default()).is_err(), "{url}");
        }
        assert!(check_webhook_url("https://example.com/hook?x=1", Rules::default()).is_ok());
        assert!(check_webhook_url("https://[2606:4700::1111]/", Rules::default()).is_ok());
    }

    #[test]
    fn where_private_addresses_are_allowed_only_what_is_no_address_is_refused() {
        let rules = Rules::default().private_webhooks(true);
        for url in ["http://127.0.0.1:9/", "https://localhost/", "http://10.1.2.3/"] {
            assert!(check_webhook_url(url, rules).is_ok(), "{url}");
        }
        for url in ["ftp://example.com/", "http://user:pw@127.0.0.1/", "data:text/plain,x", "not a url"] {
            assert!(check_webhook_url(url, rules).is_err(), "{url}");
        }
    }
}

//! URLs and addresses of a configuration.

use std::net::Ipv6Addr;

use gatewright::limits::is_public;
use http::Uri;
use url::{Host, Url};

/// Maximum length of an upstream's URL, leaving room for the path that is added.
const MAX_BASE_URL_CHARS: usize = 2000;

/// Paths of operations, as providers document them.
const OPERATIONS: [&str; 6] = [
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/images/generations",
    ":generateContent",
];

/// Whether a text consists of scheme, host and port only.
pub fn is_origin(text: &str) -> bool {
    let url = Url::parse(text).ok();
    let plain = url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.path() == "/");
    plain && !text.contains(['?', '#', '@'])
}

/// Whether a text is host and port, the format of an address to listen on.
pub fn is_listen_address(text: &str) -> bool {
    let parts = text.rsplit_once(':');
    parts.is_some_and(|(host, port)| is_host(host) && port.parse::<u16>().is_ok())
}

/// Whether a text is a name, an IPv4 address, or an IPv6 address in brackets, but not a URL, or an address without its
/// port.
fn is_host(text: &str) -> bool {
    let name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        // May include a zone, as in `[fe80::1%eth0]`.
        Some(address) => address.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()),
        None => !text.is_empty() && text.bytes().all(name),
    }
}

/// The operation path at the end of a base URL, if there is one: it is added to each request, so the base must end
/// before it.
pub(super) fn operation_of(base: &Url) -> Option<&'static str> {
    let path = base.path().trim_end_matches('/');
    OPERATIONS.into_iter().find(|operation| path.ends_with(operation))
}

/// A base URL without a trailing slash. Errors: why it is invalid; never quotes it, since it may contain a
/// password.
pub(super) fn base_url(text: &str) -> Result<Url, &'static str> {
    if text.len() > MAX_BASE_URL_CHARS {
        return Err("must have 2000 bytes or less");
    }
    let wrong = "must be a URL such as \"https://api.example/v1\"";
    let url = Url::parse(text).map_err(|_| wrong)?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("must begin with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user or a password");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or a fragment: paths are appended to it");
    }
    // The URL parser repairs what the HTTP client's parser rejects.
    if text.parse::<Uri>().is_err() {
        return Err(wrong);
    }
    Ok(url)
}

/// Whether an upstream may have this base URL. Errors: why not; never quotes it.
pub fn check_base_url(text: &str) -> Result<(), &'static str> {
    base_url(text).map(drop)
}

/// Whether a URL sends data unencrypted to a host other than this machine or one in a private network.
pub(super) fn is_exposed(url: &Url) -> bool {
    url.scheme() == "http" && is_public_host(url)
}

/// Whether a URL's host is neither this machine nor one in a private network.
pub(super) fn is_public_host(url: &Url) -> bool {
    match url.host() {
        None => false,
        Some(Host::Ipv4(address)) => is_public(address.into()),
        Some(Host::Ipv6(address)) => is_public(address.into()),
        // A name without a dot belongs to a local network or a cluster.
        Some(Host::Domain(name)) => {
            // The parser recognizes addresses only in web URLs.
            if let Ok(address) = name.parse() {
                return is_public(address);
            }
            let name = name.trim_end_matches('.');
            let local = [".localhost", ".local", ".internal", ".lan", ".home.arpa"];
            name.contains('.') && !local.iter().any(|end| name.ends_with(end))
        }
    }
}

/// Whether a secret may be sent to a token endpoint: via https, or on this machine. Errors: why not; never quotes
/// it.
pub fn check_token_url(text: &str) -> Result<(), &'static str> {
    let url = base_url(text)?;
    if url.scheme() == "https" || is_this_machine(&url) {
        Ok(())
    } else {
        Err("must begin with https://, because secrets are sent to it")
    }
}

/// Whether credentials may be fetched from a server: by https, on this machine, or from an address at which clouds serve their
/// guests. Errors: why not.
pub fn check_credentials_url(text: &str) -> Result<(), &'static str> {
    let url = Url::parse(text).map_err(|_| "is not a URL")?;
    let is_of_cloud = match url.host() {
        Some(Host::Ipv4(address)) => address.is_link_local(),
        Some(Host::Ipv6(address)) => address.segments()[..2] == [0xfd00, 0xec2],
        _ => false,
    };
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_of_cloud || is_this_machine(&url) => Ok(()),
        _ => Err("must begin with https://: credentials come from it"),
    }
}

fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_rejects_query_fragment_and_password() {
        assert!(base_url("https://api.example/v1").is_ok());
        assert!(base_url("http://[::1]:8080").is_ok());
        for wrong in [
            "",
            "api.example/v1",
            "ftp://api.example",
            "https://api.example/?a=b",
            // The HTTP client would reject these.
            "https://api.example/a b",
            &format!("https://api.example/{}", "a".repeat(2000)),
            "https://api.example/#a",
            "https://user:canary@api.example",
            "unix:/run/socket",
        ] {
            let why = base_url(wrong).expect_err(wrong);
            assert!(!why.contains("canary"));
        }
    }

    #[test]
    fn token_url_requires_https_except_on_loopback() {
        for right in
            ["https://tokens.example/a", "http://127.0.0.1:1/token", "http://[::1]:1", "http://localhost/a"]
        {
            assert_eq!(check_token_url(right), Ok(()), "{right}");
        }
        for wrong in
            ["http://tokens.example/a", "http://10.0.0.1/a", "http://localhost.example", "ftp://a", ""]
        {
            assert!(check_token_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn credentials_url_requires_https_loopback_or_instance_metadata() {
        for url in [
            "https://sts.us-east-1.amazonaws.com/",
            "http://169.254.169.254/latest/api/token?a=b",
            "http://[fd00:ec2::23]/v1/credentials",
            "http://127.0.0.1:1/a",
            "http://localhost/a",
        ] {
            assert_eq!(check_credentials_url(url), Ok(()), "{url}");
        }
        for url in
            ["http://credentials.example/", "http://10.0.0.1/", "http://[fd00::1]/", "ftp://127.0.0.1/", ""]
        {
            assert!(check_credentials_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn listen_address_is_host_and_port() {
        for right in ["127.0.0.1:8080", "[::]:8080", "[fe80::1%eth0]:1", "localhost:0", "gateway_1:80"] {
            assert!(is_listen_address(right), "{right}");
        }
        for wrong in [
            "http://127.0.0.1:8080",
            "8080",
            ":8080",
            "127.0.0.1",
            "::1:8080",
            "[::1:8080",
            "a b:1",
            "h:70000",
        ] {
            assert!(!is_listen_address(wrong), "{wrong}");
        }
    }

    #[test]
    fn operation_path_at_the_end_of_a_base_url_is_detected() {
        let found = |text: &str| operation_of(&Url::parse(text).expect("a URL"));
        assert_eq!(found("https://api.example/v1/chat/completions/"), Some("/chat/completions"));
        assert_eq!(found("https://api.example/v1/messages"), Some("/messages"));
        assert_eq!(found("https://api.example/v1beta/models/m:generateContent"), Some(":generateContent"));
        assert_eq!(found("https://api.example/v1"), None);
        assert_eq!(found("https://messages.example"), None);
    }

    #[test]
    fn http_to_public_hosts_is_exposed() {
        let exposed = |text: &str| is_exposed(&Url::parse(text).expect("a URL"));
        assert!(exposed("http://api.example.com/v1") && exposed("http://9.9.9.9/"));
        for private in [
            "https://api.example.com",
            "http://127.0.0.1:11434",
            "http://localhost:8000/v1",
            "http://vllm:8000",
            "http://10.1.2.3",
            "http://box.local",
            "http://[::1]",
        ] {
            assert!(!exposed(private), "{private}");
        }
    }
}

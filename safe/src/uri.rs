//! URIs of RFC 3986, as the format `uri` of JSON Schema means them.

use std::net::Ipv6Addr;

/// Whether a text is an absolute URI of RFC 3986.
///
/// ```
/// use gatewright_safe::uri::is_uri;
///
/// assert!(is_uri("https://gateway.example/v1"));
/// assert!(!is_uri("/v1"));
/// ```
pub fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.bytes();
    let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    is_scheme
        && is_authority(authority)
        && is_made_of(path, b":@/")
        && is_made_of(query, b":@/?")
        && is_made_of(fragment, b":@/?")
}

fn is_authority(text: &str) -> bool {
    let (user, rest) = text.split_once('@').unwrap_or(("", text));
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_rest = if let Some(rest) = rest.strip_prefix('[') {
        rest.split_once(']').is_some_and(|(address, rest)| {
            is_address(address) && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
        })
    } else {
        let (name, port) = rest.split_once(':').unwrap_or((rest, ""));
        is_made_of(name, b"") && is_port(port)
    };
    is_made_of(user, b":") && is_rest
}

/// Whether a text is what stands between brackets: an IPv6 address, or one of a later version.
fn is_address(text: &str) -> bool {
    let Some(later) = text.strip_prefix(['v', 'V']) else { return text.parse::<Ipv6Addr>().is_ok() };
    later.split_once('.').is_some_and(|(version, address)| {
        let is_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_version && !address.is_empty() && !address.contains('%') && is_made_of(address, b":")
    })
}

/// Whether a text has only unreserved characters, delimiters within parts, percent-encodings, and these.
fn is_made_of(text: &str, others: &[u8]) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_sound = match byte {
            b'%' => {
                let mut is_digit = || bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit());
                is_digit() && is_digit()
            }
            _ => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte) || others.contains(&byte),
        };
        if !is_sound {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_must_be_absolute_and_well_formed() {
        for sound in [
            "https://gateway.example.com",
            "HTTP://h:80/a/b?c=d#e",
            "urn:isbn:0451450523",
            "mailto:a@b.example",
            "http://user:word@h",
            "http://[::1]:8080/x",
            "http://[1:2:3:4:5:6:127.0.0.1]",
            "http://[v1.a:b]/",
            "file:///etc/x",
            "a:",
            "a+b-c.d:%41",
            "http://h:",
        ] {
            assert!(is_uri(sound), "{sound}");
        }
        for faulty in [
            "",
            "/path",
            "gateway.example.com",
            "1a:b",
            ":a",
            "http://h:8x",
            "http://[::1",
            "http://[::1]x",
            "http://[1::2::3]",
            "http://[fe80::1%25eth0]",
            "http://[v.a]",
            "http://h]",
            "http://a@b@c",
            "http://h/a b",
            "http://h/%4",
            "http://h/%zz",
            "http://h/é",
            "http://h/#a#b",
            "http://h:1:2",
        ] {
            assert!(!is_uri(faulty), "{faulty}");
        }
    }
}

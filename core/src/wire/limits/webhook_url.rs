//! Where a `webhook_url` may lead (2.6, 6; the rules are ours): into the public network, without a password.

use serde_json::Value;
use url::{Host, Url};

use super::address::{is_local_name, is_public};
use super::{Rules, Violation};
use crate::api::operation::Operation;

/// What is wrong with the `webhook_url` of a request.
pub(super) fn check(operation: &Operation, body: &Value, rules: Rules) -> Option<Violation> {
    let field = operation.webhook_url?;
    let why = check_webhook_url(body.get(field)?.as_str()?, rules).err()?;
    Some(Violation {
        pointer: format!("/{field}"),
        rule: "format".to_owned(),
        message: format!("{field} {why}"),
        section: "ours".to_owned(),
        missing: None,
    })
}

/// Checks whether notifications may be sent to a `webhook_url`. Errors: it is not a URL, contains a user name or
/// password, or leads to a place that these rules do not allow; the error gives the reason without the address. A
/// host name is checked only as text; the address that it resolves to is checked when a notification is sent.
///
/// ```
/// use gatewright::limits::{Rules, check_webhook_url};
///
/// assert!(check_webhook_url("https://example.com/hook", Rules::default()).is_ok());
/// assert!(check_webhook_url("https://127.0.0.1/hook", Rules::default()).is_err());
/// ```
pub fn check_webhook_url(url: &str, rules: Rules) -> Result<(), String> {
    let url = Url::parse(url).map_err(|error| format!("is not a URL: {error}"))?;
    if url.scheme() != "https" && !(rules.private_webhooks && url.scheme() == "http") {
        return Err("must begin with https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password".to_owned());
    }
    if url.host().is_none() {
        return Err("names no host".to_owned());
    }
    if !rules.private_webhooks && !may_be_public(&url) {
        return Err("leads to an address that is not public".to_owned());
    }
    Ok(())
}

/// Whether a URL's host is a public address or a name that may have one.
pub(crate) fn may_be_public(url: &Url) -> bool {
    // The parser has already converted decimal, octal and hexadecimal hosts to addresses.
    match url.host() {
        None => false,
        Some(Host::Ipv4(address)) => is_public(address.into()),
        Some(Host::Ipv6(address)) => is_public(address.into()),
        Some(Host::Domain(name)) => !is_local_name(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_webhook_urls_are_rejected() {
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
    fn allowing_private_webhooks_still_rejects_invalid_urls() {
        let rules = Rules::default().private_webhooks(true);
        for url in ["http://127.0.0.1:9/", "https://localhost/", "http://10.1.2.3/"] {
            assert!(check_webhook_url(url, rules).is_ok(), "{url}");
        }
        for url in ["ftp://example.com/", "http://user:pw@127.0.0.1/", "data:text/plain,x", "not a url"] {
            assert!(check_webhook_url(url, rules).is_err(), "{url}");
        }
    }
}

//! The address of a Postgres server, which contains its password.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use url::Url;

/// The query parameters allowed in the address. Anything else would be a mistake that goes unnoticed.
const PARAMETERS: [&str; 6] = ["host", "sslmode", "sslrootcert", "sslcert", "sslkey", "application_name"];
/// The values of `sslmode`, from the least to the most strict.
const SSL_MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/// Server-side timeouts of each connection, in milliseconds: the server cancels a statement that takes too long or waits too
/// long for a lock, and a gateway that hangs in a transaction doesn't block others.
const SERVER_SIDE: [(&str, &str); 3] = [
    ("options[statement_timeout]", "10000"),
    ("options[lock_timeout]", "5000"),
    ("options[idle_in_transaction_session_timeout]", "10000"),
];

/// The address of a Postgres database: `postgres://user:password@host:5432/database`. `Debug` and `Display` show it without
/// user and password.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(Url);

/// A text that is not a database address. Explains what is wrong without quoting the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidStoreUrl(String);

impl StoreUrl {
    /// Parses an address. Its query may set `sslmode` (by default `verify-full`, or `prefer` on this machine),
    /// `sslrootcert`, `sslcert`, `sslkey`, `application_name`, and as `host` the folder of a Unix socket.
    ///
    /// Errors: it has another format.
    pub fn new(text: &str) -> Result<Self, InvalidStoreUrl> {
        let invalid = |why: &str| InvalidStoreUrl(why.to_owned());
        let form = "must have the form postgres://user:password@host:5432/database";
        let url = Url::parse(text).map_err(|_| invalid(form))?;
        let is_postgres = matches!(url.scheme(), "postgres" | "postgresql");
        if !is_postgres || url.path().len() < 2 || url.fragment().is_some() {
            return Err(invalid(form));
        }
        for (name, value) in url.query_pairs() {
            if !PARAMETERS.contains(&&*name) {
                return Err(invalid(&format!("its query may only set {}", PARAMETERS.join(", "))));
            }
            if name == "sslmode" && !SSL_MODES.contains(&&*value) {
                return Err(invalid(&format!("sslmode must be one of {}", SSL_MODES.join(", "))));
            }
        }
        let url = Self(url);
        if url.host().is_none() {
            return Err(invalid(form));
        }
        Ok(url)
    }

    /// The parameter of this name.
    fn parameter(&self, name: &str) -> Option<String> {
        self.0.query_pairs().find(|(stated, _)| stated == name).map(|(_, value)| value.into_owned())
    }

    /// The server's name or address, or the folder of its socket.
    fn host(&self) -> Option<String> {
        let host = self.parameter("host").or_else(|| {
            let host = percent_decode_str(self.0.host_str()?.trim_matches(['[', ']']));
            host.decode_utf8().ok().map(Cow::into_owned)
        });
        host.filter(|host| !host.is_empty())
    }

    /// Whether the traffic stays on this machine.
    fn is_local(&self) -> bool {
        let host = self.host().unwrap_or_default();
        let is_loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        is_loopback || host == "localhost" || host.starts_with('/')
    }

    /// The address with the settings that all connections of a gateway share.
    pub(super) fn for_connections(&self) -> Url {
        let sslmode = if self.is_local() { "prefer" } else { "verify-full" };
        let host = self.host().unwrap_or_default();
        // Brackets around an IPv6 address would become part of its name.
        let defaults = [("application_name", "gatewright"), ("sslmode", sslmode), ("host", &*host)];
        let absent = defaults.into_iter().filter(|(name, _)| self.parameter(name).is_none());
        let mut url = self.0.clone();
        url.query_pairs_mut().extend_pairs(absent.chain(SERVER_SIDE));
        url
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "postgres://{}", self.host().unwrap_or_default())?;
        if let Some(port) = self.0.port() {
            write!(formatter, ":{port}")?;
        }
        formatter.write_str(self.0.path())
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sslmode(text: &str) -> Option<String> {
        let url = StoreUrl::new(text).expect("valid").for_connections();
        url.query_pairs().find(|(name, _)| name == "sslmode").map(|(_, value)| value.into_owned())
    }

    #[test]
    fn store_url_display_hides_credentials() {
        let url =
            StoreUrl::new("postgres://gateway:hush%21@db.example:5433/store?sslmode=require").expect("valid");
        for shown in [url.to_string(), format!("{url:?}")] {
            assert_eq!(shown, "postgres://db.example:5433/store");
        }
    }

    #[test]
    fn store_url_error_does_not_quote_the_url() {
        let wrong = [
            "hush",
            "mysql://user:hush@host/db",
            "postgres://user:hush@host",
            "postgres:///db",
            "postgres://user:hush@host/db#x",
            "postgres://user@host/db?passwrd=hush",
            "postgres://user:hush@host/db?sslmode=hush",
            "postgres://user:hush@host:port/db",
        ];
        for text in wrong {
            let error = StoreUrl::new(text).expect_err(text).to_string();
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn remote_servers_default_to_verified_tls() {
        for (text, expected) in [
            ("postgres://user@db.example/store", "verify-full"),
            ("postgres://user@10.0.0.7/store", "verify-full"),
            ("postgres://user@127.0.0.1/store", "prefer"),
            ("postgres://user@[::1]:5432/store", "prefer"),
            ("postgres://user@localhost/store", "prefer"),
            ("postgres:///store?host=/run/postgresql", "prefer"),
            ("postgres://user@127.0.0.1/store?host=db.example", "verify-full"),
            ("postgres://user@db.example/store?sslmode=disable", "disable"),
        ] {
            assert_eq!(sslmode(text).as_deref(), Some(expected), "{text}");
        }
    }
}

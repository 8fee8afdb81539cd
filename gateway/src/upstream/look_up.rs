//! Lookups of a video at an upstream: its state, and its file.

use std::time::Duration;

use bytes::Bytes;
use gatewright_config::Kind;
use gatewright_protocol::Action;
use http::uri::Authority;
use http::{HeaderValue, Uri, header};
use percent_encoding::utf8_percent_encode;

use super::Endpoint;
use super::escaping::SEGMENT;
use super::request::{introduce, videos};

/// Maximum time to the response head. Lookups involve no work.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// What to look up. The ids are the upstream's.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LookUp<'a> {
    /// The state of a video.
    State(&'a str),
    /// The file of a video, in the public format.
    Content(&'a str),
    /// A file on the upstream's own origin.
    File(&'a Uri),
}

impl LookUp<'_> {
    /// Errors: the address is invalid, or not on the upstream's origin.
    pub(super) fn build(
        self,
        endpoint: &Endpoint,
        key: Option<usize>,
        id: &str,
    ) -> Result<http::Request<Bytes>, String> {
        let video = |id| {
            let (base, id) = (&endpoint.base, utf8_percent_encode(id, SEGMENT));
            match endpoint.envelope.path(Action::Video, "") {
                Some(path) => format!("{base}{path}/{id}"),
                None if endpoint.kind == Kind::Gatewright => {
                    format!("{base}/v1{}/{id}", videos(endpoint.kind))
                }
                None => format!("{base}{}/{id}", videos(endpoint.kind)),
            }
        };
        let key = endpoint.keys.get(key);
        let address: Uri = match self {
            Self::State(id) => endpoint.uri(video(id), key.as_ref())?,
            Self::Content(id) => endpoint.uri(format!("{}/content", video(id)), key.as_ref())?,
            // Signed: don't add anything to its query.
            Self::File(address) if endpoint.has_origin_of(address) => address.clone(),
            Self::File(_) => return Err("the address of the file is not the provider's own".to_owned()),
        };
        let mut request = http::Request::new(Bytes::new());
        *request.uri_mut() = address;
        let accepted = if matches!(self, Self::State(_)) { "application/json" } else { "*/*" };
        let headers = request.headers_mut();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accepted));
        introduce(&mut request, id, endpoint, key)?;
        Ok(request)
    }
}

impl Endpoint {
    /// Whether an address has the scheme, host and port of the upstream.
    pub(crate) fn has_origin_of(&self, address: &Uri) -> bool {
        let origin = |uri: &Uri| {
            let default = if uri.scheme_str()? == "https" { 443 } else { 80 };
            let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
            let port = authority.port().map_or(Some(default), |port| port.as_str().parse().ok())?;
            Some((uri.scheme_str()?.to_owned(), Authority::host(authority).to_ascii_lowercase(), port))
        };
        let own = self.base.parse().ok().and_then(|base| origin(&base));
        own.is_some() && own == origin(address)
    }
}

#[cfg(test)]
mod tests {
    use gatewright::ApiKey;

    use super::*;
    use gatewright_config::UpstreamConfig;

    fn endpoint(kind: Kind, base: &str) -> Endpoint {
        let mut upstream = UpstreamConfig::new("one", kind, base);
        upstream.keys = vec![ApiKey::new("k1").expect("a key"), ApiKey::new("k2").expect("a key")];
        Endpoint::new(&upstream, None).expect("an endpoint")
    }

    #[test]
    fn video_lookups_use_the_paths_of_the_kind_and_the_submitting_key() {
        let (public, gateway) =
            (endpoint(Kind::Chat, "http://a/v1/"), endpoint(Kind::Gatewright, "http://a/b"));
        for (endpoint, look_up, address) in [
            (&public, LookUp::State("v/1?"), "http://a/v1/videos/v%2F1%3F"),
            (&public, LookUp::Content("v1"), "http://a/v1/videos/v1/content"),
            (&gateway, LookUp::State("v1"), "http://a/b/v1/videos/generations/v1"),
        ] {
            let request = look_up.build(endpoint, Some(1), "req_1").expect("a request");
            assert_eq!(request.uri().to_string(), address);
            assert_eq!(request.headers()["authorization"], "Bearer k2");
        }
    }

    #[test]
    fn files_are_requested_only_from_the_upstreams_own_origin() {
        let endpoint = endpoint(Kind::Gatewright, "https://Gate.example/base");
        for own in ["https://gate.example/files/a?sig=1", "https://gate.example:443/x"] {
            let address: Uri = own.parse().expect("an address");
            let request = LookUp::File(&address).build(&endpoint, None, "req_1").expect("a request");
            assert!(!request.headers().contains_key("authorization"));
        }
        for foreign in [
            "http://gate.example/files/a",
            "https://gate.example:8443/a",
            "https://gate.example.evil/a",
            "https://user@gate.example/a",
            "https://127.0.0.1/a",
            "/files/a",
        ] {
            let address: Uri = foreign.parse().expect("an address");
            assert!(LookUp::File(&address).build(&endpoint, None, "req_1").is_err(), "{foreign}");
        }
    }
}

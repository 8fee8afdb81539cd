//! Other servers for a service of AWS: the settings that all of AWS's clients have for them.

use bytes::Bytes;
use http::Uri;
use http::uri::PathAndQuery;
use reqsign_core::{Context, Error, HttpSend, Result};

use super::shared_files::Profile;

/// The URL that replaces a service's own. `service`: as variables name it, such as `STS`.
pub(super) fn configured(context: &Context, profile: Option<&Profile<'_>>, service: &str) -> Option<String> {
    let of_profile = |member: &str| profile?.get(member).map(str::to_owned);
    let ignored = context
        .env_var("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
        .or_else(|| of_profile("ignore_configured_endpoint_urls"));
    if ignored.is_some_and(|ignored| ignored.eq_ignore_ascii_case("true")) {
        return None;
    }
    context
        .env_var(&format!("AWS_ENDPOINT_URL_{service}"))
        .or_else(|| context.env_var("AWS_ENDPOINT_URL"))
        .or_else(|| of_profile("endpoint_url"))
}

/// The same resource at another server.
pub(super) fn moved(uri: &Uri, endpoint: &str) -> Result<Uri> {
    let target = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    format!("{}{target}", endpoint.trim_end_matches('/'))
        .parse()
        .map_err(|_| Error::config_invalid(format!("the endpoint {endpoint} is not a URL")))
}

/// Sends each request to another server.
#[derive(Debug)]
pub(super) struct Redirected {
    pub(super) context: Context,
    pub(super) endpoint: String,
}

impl HttpSend for Redirected {
    async fn http_send(&self, mut request: http::Request<Bytes>) -> Result<http::Response<Bytes>> {
        *request.uri_mut() = moved(request.uri(), &self.endpoint)?;
        self.context.http_send(request).await
    }
}

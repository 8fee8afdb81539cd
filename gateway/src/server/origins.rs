//! The origins whose web pages may call the gateway (CORS).

use std::time::Duration;

use gatewright::operations;
use gatewright_config::is_origin;
use http::{HeaderValue, Method, header};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::bind_error::BindError;
use super::rate_headers;
use super::request_id::REQUEST_ID;
use crate::relay::{DROPPED_HEADER, ESTIMATED_HEADER, SIMULATED_HEADER, UPSTREAM_HEADER};
use crate::storage::REPLAYED_HEADER;
use crate::wire::SHOULD_RETRY;

/// How long a browser may cache a preflight response.
const PREFLIGHT_LIFETIME: Duration = Duration::from_hours(1);

/// The layer that lets web pages of these origins call the gateway. `None` if there are no origins.
pub(super) fn cors(origins: &[String]) -> Result<Option<CorsLayer>, BindError> {
    let mut allowed = Vec::new();
    for origin in origins.iter().filter(|origin| *origin != "*") {
        let invalid = || BindError::Origin(origin.clone());
        // Browsers send origins without a trailing slash.
        let plain = origin.trim_end_matches('/');
        allowed.push(HeaderValue::try_from(plain).ok().filter(|_| is_origin(plain)).ok_or_else(invalid)?);
    }
    let allowed = match origins {
        [] => return Ok(None),
        all if all.iter().any(|origin| origin == "*") => AllowOrigin::any(),
        _ => AllowOrigin::list(allowed),
    };
    let mut methods = vec![Method::HEAD];
    for operation in operations::ALL {
        methods.extend(
            Method::try_from(operation.method.as_str()).ok().filter(|method| !methods.contains(method)),
        );
    }
    let of_ours = [REPLAYED_HEADER, UPSTREAM_HEADER, SIMULATED_HEADER, DROPPED_HEADER, ESTIMATED_HEADER];
    let exposed = [REQUEST_ID, header::RETRY_AFTER, SHOULD_RETRY]
        .into_iter()
        .chain(of_ours)
        .chain(rate_headers::names());
    Ok(Some(
        CorsLayer::new()
            .allow_origin(allowed)
            .allow_methods(methods)
            // Clients send custom headers; the key decides what they may do.
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(exposed.collect::<Vec<_>>())
            .max_age(PREFLIGHT_LIFETIME),
    ))
}

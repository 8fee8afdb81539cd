//! Gives the fuzz targets access to private code that parses untrusted input. Not in any other build.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderMap;

use crate::api::operation::Operation;
use crate::api::operations::{GENERATE_CONTENT, RETRIEVE_VIDEO};
use crate::long_work::files;
use crate::transport::base_url::BaseUrl;
use crate::transport::response::Head;
use crate::transport::secret::Secrets;
use crate::transport::{exchange, retry};
use crate::wire::error::Error;

/// The address that a base URL stands for, and the URLs of two operations with this parameter under it, if the
/// parameter is valid for them.
pub fn base_url(text: &str, parameter: &str) -> Result<(String, Vec<String>), Error> {
    let base = BaseUrl::parse(text)?;
    let join =
        |operation: &Operation, name: &str| base.join(operation, &[(name.to_owned(), parameter.to_owned())]);
    let joined = [join(&GENERATE_CONTENT, "model"), join(&RETRIEVE_VIDEO, "task_id")];
    Ok((base.as_str().to_owned(), joined.into_iter().flatten().map(String::from).collect()))
}

/// The error for an unsuccessful response.
pub fn status_error(status: u16, headers: HeaderMap, body: Bytes, now: SystemTime) -> Error {
    let retry_after = retry::retry_after(&headers, now);
    let secrets = Secrets::default();
    let redactor = secrets.redactor();
    let head = Head { status, headers, attempts: 1, elapsed: Duration::ZERO, secrets };
    exchange::status_error(head, body).with_retry_after(retry_after).shown(&redactor)
}

/// Whether a part of a file, judged by its headers, continues at this position of a file of that size.
pub fn continues(headers: &HeaderMap, from: u64, total: Option<u64>) -> bool {
    files::continues(headers, from, total, None)
}

//! Doors for the fuzz targets to what reads strangers' words and is nobody else's business. In no other build.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderMap;

use crate::base_url::BaseUrl;
use crate::error::Error;
use crate::operation::Operation;
use crate::operations::{GENERATE_CONTENT, RETRIEVE_VIDEO};
use crate::response::Head;
use crate::secret::Secrets;
use crate::{files, retry, transport};

/// The address that a base URL stands for, and those of two operations with this parameter under it, where it can be
/// one.
pub fn base_url(text: &str, parameter: &str) -> Result<(String, Vec<String>), Error> {
    let base = BaseUrl::parse(text)?;
    let join =
        |operation: &Operation, name: &str| base.join(operation, &[(name.to_owned(), parameter.to_owned())]);
    let joined = [join(&GENERATE_CONTENT, "model"), join(&RETRIEVE_VIDEO, "task_id")];
    Ok((base.as_str().to_owned(), joined.into_iter().flatten().map(String::from).collect()))
}

/// The error that an answer becomes which is none.
pub fn status_error(status: u16, headers: HeaderMap, body: Bytes, now: SystemTime) -> Error {
    let retry_after = retry::retry_after(&headers, now);
    let secrets = Secrets::default();
    let redactor = secrets.redactor();
    let head = Head { status, headers, attempts: 1, elapsed: Duration::ZERO, secrets };
    transport::status_error(head, body).with_retry_after(retry_after).shown(&redactor)
}

/// Whether a part of a file, by its headers, goes on at this place of a file of that size.
pub fn continues(headers: &HeaderMap, from: u64, total: Option<u64>) -> bool {
    files::continues(headers, from, total, None)
}

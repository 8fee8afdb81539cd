//! Reads the body of an error response, or of a document in place of an answer: no more than an error needs.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};

use crate::wire::BodyError;

/// Maximum size of an error body, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum time to read it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The body, up to the limits; empty if it exceeds them or breaks.
pub(super) async fn read<B>(body: B) -> Bytes
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BodyError>,
{
    let reading = Limited::new(body, MAX_BYTES).collect();
    match tokio::time::timeout(TIMEOUT, reading).await {
        Ok(Ok(body)) => body.to_bytes(),
        _ => Bytes::new(),
    }
}

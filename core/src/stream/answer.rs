//! The response that carries a stream: the contents of its head, and the call it belongs to.

use std::time::Duration;

use http::HeaderMap;

use super::RawStream;
use crate::api::operation::Operation;

impl RawStream {
    /// HTTP status, 200 to 299.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// assert_eq!(stream.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// Response headers.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// println!("{:?}", stream.headers().get(http::header::CONTENT_TYPE));
    /// # Ok(())
    /// # }
    /// ```
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The request id assigned by the gateway.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// println!("request {}", stream.request_id().unwrap_or("without an id"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn request_id(&self) -> Option<&str> {
        self.head.request_id()
    }

    /// How many requests were sent before the stream began.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// println!("after {} retries", stream.attempts() - 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn attempts(&self) -> u32 {
        self.head.attempts
    }

    /// Time from the start of the call to the headers of the stream.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// println!("began after {:?}", stream.elapsed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn elapsed(&self) -> Duration {
        self.head.elapsed
    }

    /// The operation that streams.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// println!("{}", stream.operation().qualified_name());
    /// # Ok(())
    /// # }
    /// ```
    pub fn operation(&self) -> &'static Operation {
        self.operation
    }
}

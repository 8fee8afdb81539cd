//! Errors of starting a gateway.

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The address is malformed, in use or not this machine's.
    #[error("cannot listen on {listen}: {source}")]
    Listen {
        /// As configured.
        listen: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// `public_url` is not scheme, host and port.
    #[error("public_url {0:?} does not have the form http://host or https://host:port")]
    PublicUrl(String),
    /// One of `allowed_origins` is not scheme, host and port.
    #[error("allowed origin {0:?} is neither * nor has the form https://host or https://host:port")]
    Origin(String),
}

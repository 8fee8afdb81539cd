//! Errors when starting a gateway.

use gatewright_config::{InvalidCountersUrl, TlsError};

use crate::access::InvalidData;
use crate::routing::InvalidRoutes;

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The address is malformed, in use, or not one of this machine's.
    #[error("cannot listen on {listen}: {source}")]
    Listen {
        /// As configured.
        listen: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// There is no address to listen on.
    #[error("there is no address to listen on")]
    Nowhere,
    /// The certificate can't be used.
    #[error(transparent)]
    Certificate(#[from] TlsError),
    /// TLS can't be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The data folder or the store's server can't be used.
    #[error("cannot use the store: {0}")]
    Data(#[from] InvalidData),
    /// The address of the shared counters is invalid.
    #[error("cannot use the counters: their address {0}")]
    Counters(#[from] InvalidCountersUrl),
    /// `public_url` is not scheme, host and port.
    #[error("public_url {0:?} does not have the form http://host or https://host:port")]
    PublicUrl(String),
    /// One of `allowed_origins` is not scheme, host and port.
    #[error("allowed origin {0:?} is neither * nor has the form https://host or https://host:port")]
    Origin(String),
    /// This gateway can't use the shared configuration.
    #[error("{0}")]
    SharedConfig(String),
    /// A reload would remove all providers from a running gateway and leave only the simulator.
    #[error(
        "the configuration names no provider, and a running gateway never starts to simulate answers: restore its upstreams, \
         or restart the gateway to serve the simulator"
    )]
    LosesProviders,
    /// Upstreams and models contradict each other, or an upstream can't be called.
    #[error("{0}")]
    Upstreams(String),
}

impl From<InvalidRoutes> for BindError {
    fn from(InvalidRoutes(why): InvalidRoutes) -> Self {
        Self::Upstreams(why)
    }
}

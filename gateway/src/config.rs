//! What a gateway can be told when it starts.

use std::time::Duration;

use gatewright::webhook::Secret;

use crate::auth::ApiKey;
use crate::fault::Faults;

/// Configuration of a gateway. Start from [`Config::default`] and change what is to differ.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address to listen at, such as `127.0.0.1:8080`; port 0 takes a free one. Default: `127.0.0.1:8080`.
    pub listen: String,
    /// The key that clients must send (section 5). Default: a new random one, see
    /// [`Gateway::key`](crate::Gateway::key).
    pub key: Option<ApiKey>,
    /// Scheme, host and port that clients reach the gateway by, for the addresses of files (4 rule 4). Default: what
    /// the request's `Host` header says.
    pub public_url: Option<String>,
    /// Longest request body. Default: 10 MiB.
    pub max_body_bytes: usize,
    /// Most connections at once; more wait. Default: 1024.
    pub max_connections: usize,
    /// Most connections at once of one peer, an IPv4 address or an IPv6 /64 network; more are turned away with 429.
    /// Default: 256.
    pub max_connections_per_peer: usize,
    /// How long a client may take to send a request's head; a connection without a request is closed then, too.
    /// Default: 60 s.
    pub header_timeout: Duration,
    /// How long a client may take to send a request's body. Default: 60 s.
    pub body_timeout: Duration,
    /// How long a client may take nothing of its answer that waits to be sent; the connection is broken then.
    /// Default: 60 s.
    pub write_timeout: Duration,
    /// Origins whose web pages may call the gateway (CORS), such as `https://app.example`; `*` stands for all.
    /// Default: none.
    pub allowed_origins: Vec<String>,
    /// How long requests and video tasks in progress, and the notifications of their ends, may go on once the gateway
    /// is told to stop. Default: 5 s.
    pub shutdown_grace: Duration,
    /// Pause of the simulated provider before each event of a stream. Default: none.
    pub event_delay: Duration,
    /// How long a simulated video task is `processing` at least (section 3). Default: 1.5 s.
    pub video_time: Duration,
    /// Most bytes of generated images and videos kept in memory, each for an hour (8); work that needs more is refused.
    /// Default: 256 MiB.
    pub max_file_bytes: usize,
    /// Secret that webhooks are signed with. Default: a new random one, see
    /// [`Gateway::webhook_secret`](crate::Gateway::webhook_secret).
    pub webhook_secret: Option<Secret>,
    /// Pause before the second attempt to deliver a webhook; it doubles each time. Default: 1 s.
    pub webhook_backoff: Duration,
    /// Lets `webhook_url` be plain http and lead to private addresses. For tests alone. Default: false.
    pub allow_private_webhooks: bool,
    /// Faults that every answer of the simulated provider has, beside those that requests ask for. Default: none.
    pub faults: Faults,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            key: None,
            public_url: None,
            max_body_bytes: 10 * 1024 * 1024,
            max_connections: 1024,
            max_connections_per_peer: 256,
            header_timeout: Duration::from_mins(1),
            body_timeout: Duration::from_mins(1),
            write_timeout: Duration::from_mins(1),
            allowed_origins: Vec::new(),
            shutdown_grace: Duration::from_secs(5),
            event_delay: Duration::ZERO,
            video_time: Duration::from_millis(1500),
            max_file_bytes: 256 * 1024 * 1024,
            webhook_secret: None,
            webhook_backoff: Duration::from_secs(1),
            allow_private_webhooks: false,
            faults: Faults::default(),
        }
    }
}

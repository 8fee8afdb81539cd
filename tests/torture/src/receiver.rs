//! The receiver of task notifications: verifies each one, and acknowledges most.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use gatewright::webhook::{self, Secret};
use tokio::net::TcpListener;

use crate::history::{Event, History};

/// One in this many notifications is not acknowledged.
const MAX_ACKNOWLEDGED: u64 = 7;

/// See the module.
pub(crate) struct Receiver {
    history: Arc<History>,
    secret: Secret,
    /// The additional secret that each node signs with.
    signers: Vec<Secret>,
    arrived: AtomicU64,
    refuses: AtomicBool,
    /// The tasks whose end was acknowledged.
    notified: Mutex<HashSet<String>>,
}

impl Receiver {
    /// Starts it at a free port. Also returns its address. `secret`: that of all nodes. `signers`: the additional secret of each
    /// node, which identifies the sender of a notification.
    pub(crate) async fn start(
        history: Arc<History>,
        secret: Secret,
        signers: Vec<Secret>,
    ) -> Result<(Arc<Self>, String)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/notifications", listener.local_addr()?);
        let (arrived, refuses, notified) = Default::default();
        let receiver = Arc::new(Self { history, secret, signers, arrived, refuses, notified });
        let router = Router::new().route("/notifications", post(receive)).with_state(Arc::clone(&receiver));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok((receiver, url))
    }

    /// Sets whether it acknowledges nothing.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.refuses.store(refuses, Ordering::Relaxed);
    }

    /// The node that has signed a notification.
    fn sender(&self, headers: &HeaderMap, body: &[u8]) -> Option<usize> {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let (id, signatures) = (header(webhook::ID_HEADER)?, header(webhook::SIGNATURE_HEADER)?);
        let timestamp = header(webhook::TIMESTAMP_HEADER)?.parse().ok()?;
        let is_its = |signer: &Secret| {
            let signature = signer.sign(id, timestamp, body);
            signatures.split(' ').any(|other| other == signature)
        };
        self.signers.iter().position(is_its)
    }

    /// Whether the end of a task was acknowledged.
    pub(crate) fn was_notified(&self, task: &str) -> bool {
        self.notified.lock().unwrap_or_else(PoisonError::into_inner).contains(task)
    }
}

async fn receive(State(receiver): State<Arc<Receiver>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let pairs = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let problem = webhook::verify(&body, pairs, std::slice::from_ref(&receiver.secret)).err();
    let problem = problem.map(|problem| problem.to_string());
    let sender = receiver.sender(&headers, &body);
    let problem = problem.or_else(|| sender.is_none().then(|| "no node has signed it".to_owned()));
    let task: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let id = headers.get(webhook::ID_HEADER).and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    let number = receiver.arrived.fetch_add(1, Ordering::Relaxed);
    let acknowledged =
        problem.is_none() && !receiver.refuses.load(Ordering::Relaxed) && number % MAX_ACKNOWLEDGED != 3;
    let done = task["id"].as_str().unwrap_or_default().to_owned();
    let node = sender.unwrap_or(usize::MAX);
    receiver.history.add(Event::Delivered { node, id, problem, acknowledged, task });
    if !acknowledged {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    receiver.notified.lock().unwrap_or_else(PoisonError::into_inner).insert(done);
    StatusCode::NO_CONTENT
}

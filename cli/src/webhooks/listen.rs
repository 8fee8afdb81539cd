//! `gatewright webhooks listen`: a receiver on this machine, for development.

use std::io::{self, Write as _};
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use clap::Args;
use gatewright::Error;
use gatewright::webhook::{self, MAX_WEBHOOK_BODY_BYTES, Secret};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::exit::{Exit, Failure, print_message};

#[derive(Debug, Args)]
pub(crate) struct ListenArguments {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090")]
    listen: String,
}

/// Prints each reported task as a line of JSON. A notification that is not signed with one of the secrets in
/// `GATEWRIGHT_WEBHOOK_SECRET` is rejected with 401.
pub(crate) async fn run(arguments: ListenArguments) -> Exit {
    let secrets = Arc::new(Secret::from_env()?);
    let failed =
        |error: io::Error| Failure::Failed(format!("cannot listen on {}: {error}", arguments.listen));
    let listener = TcpListener::bind(&arguments.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    print_message(&format!("verifying and printing notifications sent to http://{address}/; Ctrl-C stops"));
    print_message("to deliver to this machine, a gateway must run with --allow-private-webhooks");
    let limit = DefaultBodyLimit::max(MAX_WEBHOOK_BODY_BYTES);
    let router = Router::new().fallback(receive).layer(limit).with_state(secrets);
    axum::serve(listener, router).await.map_err(failed)?;
    Ok(0)
}

async fn receive(State(secrets): State<Arc<Vec<Secret>>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    match read(&secrets, &headers, &body) {
        Ok(record) => {
            let mut out = io::stdout().lock();
            match writeln!(out, "{record}").and_then(|()| out.flush()) {
                Ok(()) => StatusCode::NO_CONTENT,
                // The output is closed, so the gateway must retry.
                Err(_) => StatusCode::SERVICE_UNAVAILABLE,
            }
        }
        Err(error) => {
            print_message(&format!("rejected: {error}"));
            StatusCode::UNAUTHORIZED
        }
    }
}

/// The task object of a notification.
fn read(secrets: &[Secret], headers: &HeaderMap, body: &[u8]) -> Result<Value, String> {
    webhook::verify(body, headers, secrets).map_err(|error: Error| error.to_string())?;
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

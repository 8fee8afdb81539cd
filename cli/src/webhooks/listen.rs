//! `gatewright webhooks listen`: a receiver on this machine, for development.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use gatewright::Error;
use gatewright::webhook::{self, MAX_WEBHOOK_BODY_BYTES, Secret};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

use crate::exit::{Exit, Failure, print_message};

/// Pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

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
    loop {
        match listener.accept().await {
            Ok((connection, _)) => drop(tokio::spawn(serve(connection, Arc::clone(&secrets)))),
            // Such as too many open files, until other programs close some.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers the requests of a connection.
async fn serve(connection: TcpStream, secrets: Arc<Vec<Secret>>) {
    let answer = service_fn(|request: Request<Incoming>| async {
        let (head, body) = request.into_parts();
        let status = match Limited::new(body, MAX_WEBHOOK_BODY_BYTES).collect().await {
            Ok(body) => receive(&secrets, &head.headers, &body.to_bytes()),
            Err(_) => StatusCode::PAYLOAD_TOO_LARGE,
        };
        let mut response = Response::new(Empty::<Bytes>::new());
        *response.status_mut() = status;
        Ok::<_, Infallible>(response)
    });
    // The timer limits the time for a head. A connection that breaks concerns only its sender, who tries again.
    _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(connection), answer)
        .await;
}

fn receive(secrets: &[Secret], headers: &HeaderMap, body: &[u8]) -> StatusCode {
    match read(secrets, headers, body) {
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

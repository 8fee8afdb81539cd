//! Servers that break HTTP, or exploit it: each ends as an answer or as an error of its call, and the next call is served
//! (3). The vectors are shared by all languages.

use std::time::Duration;

use gatewright::{Client, Error};

use crate::hostile_server::{self, Case};
use crate::{chat_call, tls};

/// How long a call may take: where it is to take that long, and elsewhere.
const SHORT: Duration = Duration::from_millis(1500);
const LONG: Duration = Duration::from_mins(1);
const MAX_BODY_BYTES: usize = 1 << 20;

/// `completion`, or the kind of the error.
async fn outcome(client: &Client, stream: bool) -> String {
    let called = if stream { read_stream(client).await } else { client.call(chat_call()).await.map(drop) };
    called.map_or_else(|error| error.kind().name().to_owned(), |()| "completion".to_owned())
}

async fn read_stream(client: &Client) -> Result<(), Error> {
    client.open(chat_call()).await?.finish().await.map(drop)
}

async fn ends_one_call_and_the_next_is_served(case: Case, authority: Option<&tls::Authority>) {
    let Case { name, stream, outcome: expected, next, .. } = case.clone();
    let is_long = [&expected, &next].iter().all(|outcome| *outcome != "timeout");
    let timeout = if is_long { LONG } else { SHORT };
    let builder = Client::builder().api_key("k").max_retries(0).max_body_bytes(MAX_BODY_BYTES);
    let builder = builder.timeout(timeout).event_timeout(timeout);
    let port =
        hostile_server::start(case, authority.map(|authority| authority.acceptor_of_http2("localhost")));
    let client = match authority {
        None => builder.base_url(format!("http://localhost:{}", port.await)),
        Some(authority) => {
            builder.ca_bundle(authority.bundle()).base_url(format!("https://localhost:{}", port.await))
        }
    };
    let client = client.build().unwrap();
    assert_eq!(outcome(&client, stream).await, expected, "{name}");
    assert_eq!(outcome(&client, false).await, next, "{name}: the next call");
}

#[tokio::test]
async fn hostile_http1_server_fails_one_call_and_the_next_succeeds() {
    for case in hostile_server::cases("http1") {
        ends_one_call_and_the_next_is_served(case, None).await;
    }
}

#[tokio::test]
async fn hostile_http2_server_fails_one_call_and_the_next_succeeds() {
    let authority = tls::Authority::new("ours");
    for case in hostile_server::cases("http2") {
        ends_one_call_and_the_next_is_served(case, Some(&authority)).await;
    }
}

//! Tests streams without an upstream's socket.

use std::convert::Infallible;

use gatewright_protocol::conversation::Protocol;

use super::super::LONG_BODY;
use super::super::passthrough_stream::PassthroughStream;
use super::super::translate_stream::StreamTranslation;
use super::*;
use crate::bounds::memory_budget::MemoryBudget;
use gatewright_protocol::inspect::StreamInspector;

fn stream_of(body: Body) -> Stream {
    let inspector = StreamInspector::new(Protocol::Chat, "m", false);
    let events = Box::new(PassthroughStream::new(Protocol::Chat, Framing::Events, inspector));
    let share = MemoryBudget::new(1024 * 1024).share();
    let (presence, patience, redactor) = (Presence::default(), Duration::from_mins(1), Redactor::default());
    Stream::new(body, events, presence, patience, redactor, share, BlockingPool::of(1))
}

#[tokio::test]
async fn single_event_without_a_blank_line_is_a_response() {
    let event = r#"data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#;
    let mut stream = stream_of(Body::from(event));
    stream.begin().await.expect("an answer");
    let mut text = Vec::new();
    while let Some(bytes) = stream.next().await {
        text.extend_from_slice(&bytes.expect("an upstream that sends"));
    }
    assert_eq!(String::from_utf8(text).expect("text"), format!("{event}\n\ndata: [DONE]\n\n"));
    assert!(stream.complete);
    let half = stream_of(Body::from("data: {\"choices\":[")).begin().await;
    assert!(half.is_err());
}

/// The text of a stream, up to the first packet that isn't a keep-alive, and the number of keep-alives before it.
async fn after_signs_of_life(mut stream: Stream) -> (usize, String) {
    stream.keep_alive = Duration::from_millis(10);
    let mut signs = 0;
    loop {
        let bytes = stream.next().await.expect("more").expect("an upstream that sends");
        if bytes != Framing::Events.keep_alive() {
            return (signs, String::from_utf8(bytes.to_vec()).expect("text"));
        }
        signs += 1;
    }
}

#[tokio::test]
async fn keep_alives_to_the_client_do_not_reset_the_idle_timeout() {
    let silence = stream::pending::<Result<Bytes, Infallible>>();
    let mut stream = stream_of(Body::from_stream(silence));
    stream.idle_timeout = Duration::from_millis(100);
    let (signs, text) = after_signs_of_life(stream).await;
    assert!(signs > 0);
    assert!(text.contains("upstream_timeout"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn silence_before_the_first_event_is_a_retryable_failure() {
    let silence = stream::pending::<Result<Bytes, Infallible>>();
    let mut stream = stream_of(Body::from_stream(silence));
    stream.idle_timeout = KEEP_ALIVE + Duration::from_secs(5);
    let started = tokio::time::Instant::now();
    let failure = stream.begin().await.expect_err("silence");
    assert_eq!((failure.class, started.elapsed().as_secs()), (FailureClass::Upstream, 20));
}

#[tokio::test]
async fn upstream_that_only_sends_comments_counts_as_started_after_a_while() {
    let comments = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Some((Ok::<_, Infallible>(Bytes::from_static(b": at work\n\n")), ()))
    });
    let mut stream = stream_of(Body::from_stream(comments));
    stream.keep_alive = Duration::from_millis(10);
    stream.begin().await.expect("an upstream at work");
    let bytes = stream.next().await.expect("more").expect("an upstream that sends");
    assert!(bytes.starts_with(b": at work\n\n") && bytes.ends_with(Framing::Events.keep_alive()));
}

#[tokio::test]
async fn client_gets_keep_alives_while_upstream_pings_are_dropped() {
    let context = gatewright_protocol::ResponseContext {
        model: "m".to_owned(),
        id: "c".to_owned(),
        ..gatewright_protocol::ResponseContext::default()
    };
    let pings = stream::unfold(0, |count| async move {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
        let start = "data: {\"type\":\"message_start\",\"message\":{}}\n\n";
        let event = if count < 100 { ping } else { start };
        Some((Ok::<_, Infallible>(Bytes::from_static(event.as_bytes())), count + 1))
    });
    let mut stream = stream_of(Body::from_stream(pings));
    stream.events =
        Box::new(StreamTranslation::new(Protocol::Messages, Protocol::Chat, Framing::Events, context, None));
    let (signs, text) = after_signs_of_life(stream).await;
    assert!(signs >= 1 && text.contains("chat.completion.chunk"), "{signs}: {text}");
}

#[tokio::test]
async fn stream_ends_at_the_terminal_event() {
    let events = stream::unfold(0, |count| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let event: &[u8] = match count {
            0 => b"data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
            _ => b": still here\n\n",
        };
        Some((Ok::<_, Infallible>(Bytes::from_static(event)), count + 1))
    });
    let mut stream = stream_of(Body::from_stream(events));
    let whole = async { while stream.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(20), whole).await.expect("an end");
    assert!(stream.complete);
}

#[tokio::test]
async fn long_event_is_parsed_in_the_blocking_pool_in_order() {
    let chunk = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let events =
        [chunk("first"), chunk(&"x".repeat(LONG_BODY)), chunk("last"), "data: [DONE]\n\n".to_owned()];
    let translating = || {
        let context = gatewright_protocol::ResponseContext {
            model: "m".to_owned(),
            id: "c".to_owned(),
            ..gatewright_protocol::ResponseContext::default()
        };
        Box::new(StreamTranslation::new(Protocol::Chat, Protocol::Messages, Framing::Events, context, None))
    };
    for is_translated in [false, true] {
        let mut stream = stream_of(Body::from(events.concat()));
        if is_translated {
            stream.events = translating();
        }
        let blocking_pool = stream.blocking_pool.clone();
        let (leave, left) = std::sync::mpsc::channel::<()>();
        let busy = tokio::spawn(async move { blocking_pool.work(move |_| Ok(_ = left.recv())).await });
        tokio::task::yield_now().await;
        let mut next = Box::pin(stream.next());
        let waiting = tokio::time::timeout(Duration::from_millis(50), &mut next).await;
        assert!(waiting.is_err(), "the event was parsed immediately");
        drop(leave);
        let mut text = next.await.expect("more").expect("an upstream that sends").to_vec();
        while let Some(bytes) = stream.next().await {
            text.extend_from_slice(&bytes.expect("an upstream that sends"));
        }
        busy.await.expect("no panic").expect("done");
        let text = String::from_utf8(text).expect("text");
        let places = ["first", "xxx", "last"].map(|word| text.find(word).expect("relayed"));
        assert!(places.is_sorted() && stream.complete);
    }
}

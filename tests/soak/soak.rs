//! The Rust side of `cargo xtask soak REQUESTS EVENTS`: prints `PHASE DONE` forty times per phase.

#![expect(clippy::print_stdout, reason = "the lines are what xtask reads")]

use futures_util::future::try_join_all;
use gatewright::Client;
use gatewright::types::{ChatCompletionRequest, ChatMessage};

/// Calls in progress at once.
const AT_ONCE: u64 = 8;
/// Events of each stream that xtask's server sends.
const EVENTS_PER_STREAM: u64 = 10_000;
/// Samples of a phase.
const SAMPLES: u64 = 40;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let requests = arguments.next().ok_or("REQUESTS is missing")??;
    let events = arguments.next().ok_or("EVENTS is missing")??;
    let client = Client::from_env()?;
    let request = ChatCompletionRequest::new("m", vec![ChatMessage::user("Tell me about rivers.")]);

    let rounds = requests / AT_ONCE;
    let chat = client.chat();
    let completions = chat.completions();
    for sample in 1..=SAMPLES {
        for _ in (sample - 1) * rounds / SAMPLES..sample * rounds / SAMPLES {
            let answers = try_join_all((0..AT_ONCE).map(|_| completions.create(&request))).await?;
            for answer in &answers {
                assert_eq!(answer.text(), Some("Rivers shape the land they cross."));
            }
        }
        println!("requests {}", sample * rounds / SAMPLES * AT_ONCE);
    }

    let streams = events / EVENTS_PER_STREAM;
    for sample in 1..=SAMPLES {
        for _ in (sample - 1) * streams / SAMPLES..sample * streams / SAMPLES {
            let mut chunks = completions.stream(&request).await?;
            let mut seen = 0;
            while let Some(chunk) = chunks.try_next().await? {
                assert_eq!(chunk.choices.len(), 1);
                seen += 1;
            }
            assert_eq!(seen, EVENTS_PER_STREAM);
        }
        println!("events {}", sample * streams / SAMPLES * EVENTS_PER_STREAM);
    }
    Ok(())
}

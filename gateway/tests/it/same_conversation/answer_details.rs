//! What a response contains beyond text and calls: reasoning with its signature, refusals, and token details
//! (cached and reasoning tokens). Unary and streamed, from an upstream of each
//! protocol to a client of each.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::answers::named;
use super::{Bench, answering, model_at, pairs};
use crate::callers::{Protocol, numbered, response};
use crate::support::{Event, events};
use crate::upstreams::{Seen, Step};

const THOUGHT: &str = "They ask about two cities.";
const PROOF: &str = "cHJvb2Y=";
/// The prefix of a foreign signature that a client of the native protocol gets.
const MARK: &[u8] = b"gw-signature:";
const ANSWER: &str = "Snow and sun.";
const REFUSAL: &str = "That I do not tell.";

/// What a client parses.
#[derive(Debug, Clone, Default, PartialEq)]
struct ReceivedAnswer {
    thought: String,
    proof: String,
    text: String,
    refusal: String,
    /// The finish reason, in the client's protocol.
    end: String,
    tokens: Tokens,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Tokens {
    /// Input tokens, and those among them read from a cache.
    read: u64,
    cached: u64,
    /// Output tokens, and those among them spent on reasoning.
    written: u64,
    thoughts: u64,
}

const TOKENS: Tokens = Tokens { read: 30, cached: 10, written: 12, thoughts: 5 };

/// [`TOKENS`] in the form of a protocol.
fn usage(speaks: Protocol) -> Value {
    match speaks {
        Protocol::Chat => json!({"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42,
            "prompt_tokens_details": {"cached_tokens": 10},
            "completion_tokens_details": {"reasoning_tokens": 5}}),
        Protocol::Responses => json!({"input_tokens": 30, "output_tokens": 12, "total_tokens": 42,
            "input_tokens_details": {"cached_tokens": 10}, "output_tokens_details": {"reasoning_tokens": 5}}),
        // Cached tokens are counted separately.
        Protocol::Messages => json!({"input_tokens": 20, "cache_read_input_tokens": 10,
            "cache_creation_input_tokens": 0, "output_tokens": 12,
            "output_tokens_details": {"thinking_tokens": 5}}),
        // And here the reasoning tokens.
        Protocol::Native => json!({"promptTokenCount": 30, "cachedContentTokenCount": 10,
            "candidatesTokenCount": 7, "thoughtsTokenCount": 5, "totalTokenCount": 42}),
    }
}

/// Token counts, as a client reads them.
fn tokens(client: Protocol, usage: &Value) -> Tokens {
    let count = |at: &str| usage.pointer(at).and_then(Value::as_u64).unwrap_or_default();
    match client {
        Protocol::Chat => Tokens {
            read: count("/prompt_tokens"),
            cached: count("/prompt_tokens_details/cached_tokens"),
            written: count("/completion_tokens"),
            thoughts: count("/completion_tokens_details/reasoning_tokens"),
        },
        Protocol::Responses => Tokens {
            read: count("/input_tokens"),
            cached: count("/input_tokens_details/cached_tokens"),
            written: count("/output_tokens"),
            thoughts: count("/output_tokens_details/reasoning_tokens"),
        },
        Protocol::Messages => Tokens {
            read: count("/input_tokens") + count("/cache_read_input_tokens"),
            cached: count("/cache_read_input_tokens"),
            written: count("/output_tokens"),
            thoughts: count("/output_tokens_details/thinking_tokens"),
        },
        Protocol::Native => Tokens {
            read: count("/promptTokenCount"),
            cached: count("/cachedContentTokenCount"),
            written: count("/candidatesTokenCount") + count("/thoughtsTokenCount"),
            thoughts: count("/thoughtsTokenCount"),
        },
    }
}

fn candidate(parts: &Value, end: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    let mut document = json!({"modelVersion": "theirs"});
    if let Some(end) = end {
        candidate["finishReason"] = end.into();
        document["usageMetadata"] = usage(Protocol::Native);
    }
    document["candidates"] = json!([candidate]);
    document
}

fn completed(output: &Value) -> Value {
    let mut response = response("completed", output.clone());
    response["usage"] = usage(Protocol::Responses);
    response
}

fn message(content: &Value, end: &str) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "theirs", "content": content,
        "stop_reason": end, "stop_sequence": null, "usage": usage(Protocol::Messages)})
}

fn completion(message: &Value) -> Value {
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"});
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "theirs",
        "choices": [choice], "usage": usage(Protocol::Chat)})
}

/// Items of responses: reasoning and message.
fn thoughtful_items() -> [Value; 2] {
    let part = json!({"type": "output_text", "text": ANSWER, "annotations": [], "logprobs": []});
    [
        json!({"type": "reasoning", "id": "rs_1", "summary": [],
            "content": [{"type": "reasoning_text", "text": THOUGHT}], "encrypted_content": PROOF}),
        json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}),
    ]
}

fn refusing_item() -> Value {
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "refusal", "refusal": REFUSAL}]})
}

/// Reasoning, and the answer that follows.
fn thoughtful(speaks: Protocol) -> Value {
    match speaks {
        Protocol::Chat => completion(&json!({"role": "assistant", "content": ANSWER, "refusal": null,
            "reasoning_content": THOUGHT,
            "reasoning_details": [{"type": "reasoning.text", "text": THOUGHT, "signature": PROOF}]})),
        Protocol::Responses => completed(&json!(thoughtful_items())),
        Protocol::Messages => {
            let thinking = json!({"type": "thinking", "thinking": THOUGHT, "signature": PROOF});
            message(&json!([thinking, {"type": "text", "text": ANSWER}]), "end_turn")
        }
        Protocol::Native => {
            let thought = json!({"text": THOUGHT, "thought": true, "thoughtSignature": PROOF});
            candidate(&json!([thought, {"text": ANSWER}]), Some("STOP"))
        }
    }
}

/// A refusal. Two protocols have a separate field for its text.
fn refusing(speaks: Protocol) -> Value {
    match speaks {
        Protocol::Chat => completion(&json!({"role": "assistant", "content": null, "refusal": REFUSAL})),
        Protocol::Responses => completed(&json!([refusing_item()])),
        Protocol::Messages => message(&json!([{"type": "text", "text": REFUSAL}]), "refusal"),
        Protocol::Native => candidate(&json!([{"text": REFUSAL}]), Some("SAFETY")),
    }
}

fn chunks(deltas: Vec<Value>) -> String {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
            "model": "theirs", "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: Value, end: Value| json!([{"index": 0, "delta": delta, "finish_reason": end}]);
    let mut text: String =
        deltas.into_iter().map(|delta| chunk(choice(delta, Value::Null), Value::Null)).collect();
    text += &chunk(choice(json!({}), "stop".into()), Value::Null);
    text += &chunk(json!([]), usage(Protocol::Chat));
    text + "data: [DONE]\n\n"
}

/// Items as events: each begins without content, gets one fragment, and ends.
fn item_events(items: &[Value], pieces: &[(&str, &str)]) -> String {
    let mut events =
        vec![json!({"type": "response.created", "response": response("in_progress", json!([]))})];
    for (index, (item, (kind, text))) in items.iter().zip(pieces).enumerate() {
        let mut started = item.clone();
        started["content"] = json!([]);
        let mut piece = json!({"type": kind, "item_id": item["id"], "output_index": index, "content_index": 0,
            "delta": text});
        if *kind == "response.output_text.delta" {
            piece["logprobs"] = json!([]);
        }
        events.extend([
            json!({"type": "response.output_item.added", "output_index": index, "item": started}),
            piece,
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        ]);
    }
    events.push(json!({"type": "response.completed", "response": completed(&json!(items))}));
    named(numbered(events))
}

/// Blocks as events: each begins empty and gets fragments.
fn block_events(blocks: Vec<(Value, Vec<Value>)>, end: &str) -> String {
    let mut started = message(&json!([]), end);
    started["stop_reason"] = Value::Null;
    started["usage"]["output_tokens"] = 1.into();
    let mut events = vec![json!({"type": "message_start", "message": started})];
    for (index, (block, pieces)) in blocks.into_iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        let piece = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(pieces.into_iter().map(piece));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.extend([
        json!({"type": "message_delta", "delta": {"stop_reason": end, "stop_sequence": null},
            "usage": usage(Protocol::Messages)}),
        json!({"type": "message_stop"}),
    ]);
    named(events)
}

fn documents(documents: [Value; 2]) -> String {
    documents.map(|document| format!("data: {document}\n\n")).concat()
}

fn thoughtful_stream(speaks: Protocol) -> String {
    match speaks {
        Protocol::Chat => chunks(vec![
            json!({"role": "assistant", "content": ""}),
            json!({"reasoning_content": THOUGHT,
                "reasoning_details": [{"type": "reasoning.text", "text": THOUGHT, "index": 0}]}),
            json!({"reasoning_details": [{"type": "reasoning.text", "signature": PROOF, "index": 0}]}),
            json!({"content": ANSWER}),
        ]),
        Protocol::Responses => item_events(
            &thoughtful_items(),
            &[("response.reasoning_text.delta", THOUGHT), ("response.output_text.delta", ANSWER)],
        ),
        Protocol::Messages => {
            let pieces = vec![
                json!({"type": "thinking_delta", "thinking": THOUGHT}),
                json!({"type": "signature_delta", "signature": PROOF}),
            ];
            let text = vec![json!({"type": "text_delta", "text": ANSWER})];
            let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
            block_events(vec![(thinking, pieces), (json!({"type": "text", "text": ""}), text)], "end_turn")
        }
        Protocol::Native => {
            let thought = json!({"text": THOUGHT, "thought": true, "thoughtSignature": PROOF});
            let answer = candidate(&json!([{"text": ANSWER}]), Some("STOP"));
            documents([candidate(&json!([thought]), None), answer])
        }
    }
}

fn refusing_stream(speaks: Protocol) -> String {
    match speaks {
        Protocol::Chat => {
            chunks(vec![json!({"role": "assistant", "content": ""}), json!({"refusal": REFUSAL})])
        }
        Protocol::Responses => item_events(&[refusing_item()], &[("response.refusal.delta", REFUSAL)]),
        Protocol::Messages => {
            let text = vec![json!({"type": "text_delta", "text": REFUSAL})];
            block_events(vec![(json!({"type": "text", "text": ""}), text)], "refusal")
        }
        Protocol::Native => {
            let (first, second) = REFUSAL.split_at(4);
            let last = candidate(&json!([{"text": second}]), Some("SAFETY"));
            documents([candidate(&json!([{"text": first}]), None), last])
        }
    }
}

/// The signature without the mark that the gateway adds for clients of the native protocol.
fn unmarked(proof: &str) -> String {
    let bytes = BASE64_STANDARD.decode(proof).expect("base64");
    let marked = bytes.strip_prefix(MARK).map(|proof| String::from_utf8(proof.to_vec()).expect("text"));
    marked.unwrap_or_else(|| proof.to_owned())
}

impl ReceivedAnswer {
    /// What a client of chat parses from a message or a delta.
    fn message(&mut self, message: &Value) {
        self.text += text(&message["content"]);
        self.refusal += text(&message["refusal"]);
        self.thought += text(&message["reasoning_content"]);
        for detail in message["reasoning_details"].as_array().into_iter().flatten() {
            self.proof += text(&detail["signature"]);
            self.proof += text(&detail["data"]);
        }
    }

    /// A response, as its client parses it.
    fn response(response: &Value) -> Self {
        let mut received = Self { end: text(&response["status"]).to_owned(), ..Self::default() };
        received.tokens = tokens(Protocol::Responses, &response["usage"]);
        for item in response["output"].as_array().into_iter().flatten() {
            for part in item["content"].as_array().into_iter().flatten() {
                match text(&part["type"]) {
                    "reasoning_text" => received.thought += text(&part["text"]),
                    "refusal" => received.refusal += text(&part["refusal"]),
                    _ => received.text += text(&part["text"]),
                }
            }
            for part in item["summary"].as_array().into_iter().flatten() {
                received.thought += text(&part["text"]);
            }
            received.proof += text(&item["encrypted_content"]);
        }
        received
    }

    /// A document of the native protocol: a response, or a part of one.
    fn document(&mut self, document: &Value) {
        let candidate = &document["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            let kind = if part["thought"] == true { &mut self.thought } else { &mut self.text };
            *kind += text(&part["text"]);
            self.proof += &unmarked(text(&part["thoughtSignature"]));
        }
        self.end += text(&candidate["finishReason"]);
        if document["usageMetadata"].is_object() {
            self.tokens = tokens(Protocol::Native, &document["usageMetadata"]);
        }
    }

    fn of_whole(client: Protocol, answer: &Value) -> Self {
        let mut received = Self::default();
        match client {
            Protocol::Chat => {
                received.message(&answer["choices"][0]["message"]);
                text(&answer["choices"][0]["finish_reason"]).clone_into(&mut received.end);
                received.tokens = tokens(client, &answer["usage"]);
            }
            Protocol::Responses => return Self::response(answer),
            Protocol::Messages => {
                for block in answer["content"].as_array().into_iter().flatten() {
                    received.thought += text(&block["thinking"]);
                    received.proof += text(&block["signature"]);
                    received.text += text(&block["text"]);
                }
                text(&answer["stop_reason"]).clone_into(&mut received.end);
                received.tokens = tokens(client, &answer["usage"]);
            }
            Protocol::Native => received.document(answer),
        }
        received
    }

    fn of_stream(client: Protocol, events: &[Event]) -> Self {
        let (mut received, mut last) = (Self::default(), None);
        for event in events.iter().filter(|event| event.data != "[DONE]").map(Event::json) {
            let delta = &event["delta"];
            match client {
                Protocol::Chat => {
                    received.message(&event["choices"][0]["delta"]);
                    received.end += text(&event["choices"][0]["finish_reason"]);
                    if event["usage"].is_object() {
                        received.tokens = tokens(client, &event["usage"]);
                    }
                }
                Protocol::Responses => match text(&event["type"]) {
                    "response.output_text.delta" => received.text += text(delta),
                    "response.refusal.delta" => received.refusal += text(delta),
                    "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
                        received.thought += text(delta);
                    }
                    "response.completed" | "response.incomplete" => {
                        last = Some(Self::response(&event["response"]));
                    }
                    _ => {}
                },
                Protocol::Messages => {
                    received.thought += text(&delta["thinking"]);
                    received.proof += text(&delta["signature"]);
                    received.text += text(&delta["text"]);
                    received.end += text(&delta["stop_reason"]);
                    if event["type"] == "message_delta" {
                        received.tokens = tokens(client, &event["usage"]);
                    }
                }
                Protocol::Native => received.document(&event),
            }
        }
        match last {
            // The last event repeats everything that arrived in fragments.
            Some(last) => {
                assert_eq!(
                    (&last.text, &last.refusal, &last.thought),
                    (&received.text, &received.refusal, &received.thought)
                );
                last
            }
            None => received,
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A signature with the mark of its source protocol, as clients of another protocol get it.
fn marked(proof: &str, maker: Protocol, client: Protocol) -> String {
    if maker == client {
        return proof.to_owned();
    }
    format!("gw-{}:{proof}", format!("{maker:?}").to_lowercase())
}

/// Calls an upstream of each kind from each protocol, unary and streamed, and compares what each client parses.
async fn expect(steps: fn(&Seen) -> Vec<Step>, expected: fn(Protocol, Protocol) -> ReceivedAnswer) {
    let bench = Bench::start(steps).await;
    for (stream, (speaks, client)) in
        [false, true].into_iter().flat_map(|stream| pairs().map(move |pair| (stream, pair)))
    {
        let (path, mut body) = client.request(&model_at(speaks), stream);
        if client == Protocol::Chat && stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        let exchange = bench.exchange(client, speaks, &path, &body).await;
        assert_eq!(exchange.is_stream, stream);
        let received = if stream {
            ReceivedAnswer::of_stream(client, &events(&exchange.received))
        } else {
            ReceivedAnswer::of_whole(client, &serde_json::from_str(&exchange.received).expect("JSON"))
        };
        // An upstream answers in the protocol in which it is called.
        let expected = expected(speaks.spoken_for(client), client);
        assert_eq!(received, expected, "{client:?} at {speaks:?}, stream: {stream}: {}", exchange.received);
    }
}

#[tokio::test]
async fn reasoning_signature_and_token_details_reach_every_client() {
    let steps = |seen: &Seen| answering(seen, thoughtful, thoughtful_stream);
    expect(steps, |speaks, client| {
        let end = match client {
            Protocol::Chat => "stop",
            Protocol::Responses => "completed",
            Protocol::Messages => "end_turn",
            Protocol::Native => "STOP",
        };
        ReceivedAnswer {
            thought: THOUGHT.to_owned(),
            proof: marked(PROOF, speaks, client),
            text: ANSWER.to_owned(),
            end: end.to_owned(),
            tokens: TOKENS,
            ..ReceivedAnswer::default()
        }
    })
    .await;
}

#[tokio::test]
async fn refusal_reaches_every_client_as_text_or_finish_reason() {
    let steps = |seen: &Seen| answering(seen, refusing, refusing_stream);
    expect(steps, |speaks, client| {
        // The refusal's text has its own field if both protocols support that.
        let has_word = |protocol| matches!(protocol, Protocol::Chat | Protocol::Responses);
        let (text, refusal) =
            if has_word(speaks) && has_word(client) { ("", REFUSAL) } else { (REFUSAL, "") };
        let end = match (speaks, client) {
            // There the refusal field itself indicates it.
            (Protocol::Chat, Protocol::Chat) => "stop",
            (_, Protocol::Chat) => "content_filter",
            (Protocol::Native, Protocol::Responses) => "incomplete",
            (_, Protocol::Responses) => "completed",
            (_, Protocol::Messages) => "refusal",
            (_, Protocol::Native) => "SAFETY",
        };
        ReceivedAnswer {
            text: text.to_owned(),
            refusal: refusal.to_owned(),
            end: end.to_owned(),
            tokens: TOKENS,
            ..ReceivedAnswer::default()
        }
    })
    .await;
}

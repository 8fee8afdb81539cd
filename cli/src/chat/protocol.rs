//! The protocol in which `gatewright chat` calls the gateway.

use clap::ValueEnum;
use gatewright::operations::{
    CREATE_CHAT_COMPLETION, CREATE_MESSAGE, CREATE_RESPONSE, GENERATE_CONTENT, STREAM_GENERATE_CONTENT,
};
use gatewright::types::{ChatCompletionRequest, ChatStreamOptions};
use gatewright::{Call, Operation};
use gatewright_protocol::conversation::{Answer, JsonPointer, PartKind, Protocol};
use gatewright_protocol::{Defaults, EncodedRequest};
use serde_json::Value;

use crate::exit::Failure;

/// `max_tokens` for the protocol that requires it, unless the user sets it.
const DEFAULT_MAX_TOKENS: u64 = 8192;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ChatProtocol {
    #[default]
    Chat,
    Responses,
    Messages,
    Native,
}

impl ChatProtocol {
    pub(super) fn protocol(self) -> Protocol {
        match self {
            Self::Chat => Protocol::Chat,
            Self::Responses => Protocol::Responses,
            Self::Messages => Protocol::Messages,
            Self::Native => Protocol::Native,
        }
    }

    pub(super) fn operation(self, is_stream: bool) -> &'static Operation {
        match self {
            Self::Chat => &CREATE_CHAT_COMPLETION,
            Self::Responses => &CREATE_RESPONSE,
            Self::Messages => &CREATE_MESSAGE,
            Self::Native if is_stream => &STREAM_GENERATE_CONTENT,
            Self::Native => &GENERATE_CONTENT,
        }
    }

    /// The call for a request. Errors: the protocol can't express part of it.
    pub(super) fn call(self, request: &ChatCompletionRequest, is_stream: bool) -> Result<Call, Failure> {
        let mut request = request.clone();
        if is_stream {
            request.stream = Some(true);
            request.stream_options = Some(ChatStreamOptions::default().with_include_usage(true));
        }
        let body = serde_json::to_value(&request).expect("plain values");
        let body = if self == Self::Chat { body } else { self.translated(body, &request.model, is_stream)? };
        let call = Call::new(self.operation(is_stream)).object(body.to_string());
        Ok(if self == Self::Native { call.path("model", request.model) } else { call })
    }

    fn translated(self, body: Value, model: &str, is_stream: bool) -> Result<Value, Failure> {
        let conversation = Protocol::Chat.request_in(body, model, is_stream);
        let conversation =
            conversation.map_err(|error| Failure::Usage(format!("the request cannot be sent: {error}")))?;
        let defaults = Defaults { max_tokens: DEFAULT_MAX_TOKENS, ..Defaults::default() };
        let EncodedRequest { body, dropped } = self.protocol().request_out(&conversation, defaults);
        // A gateway ends such an answer itself; a request of the protocol can't ask for it.
        let stop = conversation.stop.first().filter(|_| !self.protocol().rules().stop_sequences);
        match dropped.first().or(stop.map(|stop| &stop.at)) {
            None => Ok(body),
            Some(lost) => Err(self.cannot_express(lost)),
        }
    }

    fn cannot_express(self, lost: &JsonPointer) -> Failure {
        let member = lost.trim_start_matches('/');
        let member = member.split_once('/').map_or(member, |(first, _)| first);
        let flag = match member {
            "reasoning_effort" => "effort".to_owned(),
            // Every protocol has texts.
            "messages" => "image".to_owned(),
            member => member.replace('_', "-"),
        };
        let name = self.protocol().name();
        Failure::Usage(format!(
            "the {name} protocol has no form for this --{flag}: leave it out, or choose another --protocol"
        ))
    }

    /// Reads a whole answer. Errors: it doesn't have the form of the protocol.
    pub(super) fn read(self, body: &[u8]) -> Result<Answer, Failure> {
        let answer = serde_json::from_slice(body).ok().and_then(|body| self.protocol().answer_in(body).ok());
        let name = self.protocol().name();
        let refuse = || {
            Failure::Failed(format!(
                "the answer does not have the form of the {name} protocol: try another --protocol"
            ))
        };
        answer.ok_or_else(refuse)
    }
}

/// The text of an answer's first choice, without thoughts.
pub(super) fn text_of(answer: &Answer) -> String {
    let parts = answer.choices.iter().take(1).flat_map(|choice| &choice.parts);
    let texts = parts.filter_map(|part| match &part.kind {
        PartKind::Text(text) | PartKind::Refusal(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use gatewright::types::{ChatCompletionRequestReasoningEffort, ChatMessage};
    use serde_json::json;

    use super::*;

    fn body(protocol: ChatProtocol, request: &ChatCompletionRequest) -> Value {
        let call = protocol.call(request, false).expect("a call");
        serde_json::from_slice(&call.body.expect("a body")).expect("JSON")
    }

    #[test]
    fn request_is_written_in_each_protocol() {
        let messages = vec![ChatMessage::system("Be brief."), ChatMessage::user("Say hello.")];
        let mut request = ChatCompletionRequest::new("model-sol", messages);
        request.max_tokens = Some(4000);
        request.reasoning_effort = Some(ChatCompletionRequestReasoningEffort::from("low"));
        for (protocol, texts) in [
            (ChatProtocol::Chat, ["/messages/0/content", "/messages/1/content"]),
            (ChatProtocol::Responses, ["/instructions", "/input/0/content"]),
            (ChatProtocol::Messages, ["/system", "/messages/0/content"]),
            (ChatProtocol::Native, ["/systemInstruction/parts/0/text", "/contents/0/parts/0/text"]),
        ] {
            let body = body(protocol, &request);
            for (place, text) in texts.into_iter().zip(["Be brief.", "Say hello."]) {
                let found = body.pointer(place).map(Value::to_string).unwrap_or_default();
                assert!(found.contains(text), "{protocol:?} {place}: {body}");
            }
        }
    }

    #[test]
    fn flag_that_a_protocol_lacks_is_named() {
        let mut request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
        request.stop = Some(vec!["END".to_owned()].into());
        let failure = ChatProtocol::Responses.call(&request, false).expect_err("responses has no stop");
        assert_eq!(
            failure.message(),
            "the responses protocol has no form for this --stop: leave it out, or choose another --protocol"
        );
        assert_eq!(body(ChatProtocol::Messages, &request)["stop_sequences"], json!(["END"]));
    }

    #[test]
    fn document_of_another_form_is_an_error() {
        for protocol in
            [ChatProtocol::Chat, ChatProtocol::Responses, ChatProtocol::Messages, ChatProtocol::Native]
        {
            for document in ["", "[]", "7", r#"{"choices":7}"#] {
                assert!(protocol.read(document.as_bytes()).is_err(), "{protocol:?} {document}");
            }
        }
    }
}
